// What a reconciliation of a policy does when one of its steps meets an error. Docs: docs/runtime.md.
import { type ErrorKind, errorKind, ReconcileError } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import { REASONS, type RolloutStep } from '../../rollout/index.ts';

/** Steps that read or write objects: of a reconciliation, of a plan, and of the writer of webhook configurations. */
export type FallibleStep =
  | 'remove'
  | 'removePredecessor'
  | 'rollBack'
  | 'checkSchema'
  | RolloutStep['type']
  | 'writeConfigurations';

/** The runtime maps the error to retry, status and event by its kind; a rule says what is particular to a step. */
export interface ErrorRule {
  /**
   * - `end`: no further step.
   * - `go on`: further steps, then the error.
   * - `fail the revision`: its state says so, and it is not tried again; one in force stays, and is tried again later.
   */
  readonly effect: 'end' | 'go on' | 'fail the revision';
  /** The reason of condition and event, in place of ReconcileFailed; with it, the error is always retried. */
  readonly reason?: typeof REASONS.webhookRefused;
}

const END: ErrorRule = { effect: 'end' };
const GO_ON: ErrorRule = { effect: 'go on' };
/** No watch reports that permissions were granted, so it is retried. */
const REFUSED: ErrorRule = { effect: 'end', reason: REASONS.webhookRefused };

type ErrorRules = Readonly<Record<ErrorKind, ErrorRule>>;

const ALWAYS_END: ErrorRules = { conflict: END, forbidden: END, refused: END, unavailable: END };
/** Further steps would make a revision serve that is not covered. */
const BEFORE_SERVING: ErrorRules = {
  ...ALWAYS_END,
  forbidden: REFUSED,
  refused: { effect: 'fail the revision', reason: REASONS.webhookRefused },
};

export const ERROR_RULES: Readonly<Record<FallibleStep, ErrorRules>> = {
  remove: ALWAYS_END,
  removePredecessor: ALWAYS_END,
  // The declared spec is rolled out, unless a newer version of it is about to be read.
  rollBack: { conflict: END, forbidden: GO_ON, refused: GO_ON, unavailable: GO_ON },
  checkSchema: ALWAYS_END,
  create: ALWAYS_END,
  refresh: ALWAYS_END,
  prevalidate: ALWAYS_END,
  inherit: ALWAYS_END,
  transition: ALWAYS_END,
  setEnforced: ALWAYS_END,
  delete: ALWAYS_END,
  uncover: ALWAYS_END,
  dryRun: BEFORE_SERVING,
  widen: BEFORE_SERVING,
  // The revision serves already.
  enforce: { ...BEFORE_SERVING, forbidden: { ...REFUSED, effect: 'go on' } },
  writeConfigurations: { ...ALWAYS_END, forbidden: REFUSED, refused: REFUSED },
};

/** What follows an error of a step, and the error for the end of the reconciliation. */
export function afterError(
  step: FallibleStep,
  error: unknown,
): Pick<ErrorRule, 'effect'> & { readonly failure: unknown } {
  // It says by itself how the reconciliation ends.
  if (error instanceof ReconcileError) {
    return { effect: 'end', failure: error };
  }
  const { effect, reason } = ERROR_RULES[step][errorKind(error)];
  const failure = reason === undefined ? error : new ReconcileError(reason, errorText(error), { cause: error });
  return { effect, failure };
}
