// The shape of a reconciler: ordered steps of one type, then the status, even if a step failed.
import type { Readiness } from '../resources/index.ts';
import { earlierResult, outcomeOfError, type ReconcileResult } from './reconcile-outcome.ts';

/** One attempt to reconcile a key. */
export interface ReconcileAttempt {
  /** Consecutive failures before this attempt. */
  readonly failures: number;
  /** Aborted when the controller stops, but not when the attempt times out. */
  readonly stopped: AbortSignal;
}

/** The result of a step that ends the pass: later steps are skipped. */
export interface LastStep extends ReconcileResult {
  readonly isLast: true;
}

/** One step of a reconciliation. May throw an error for `outcomeOfError`; later steps are then skipped. */
export type ReconcileStep<Subject> = (
  subject: Subject,
  signal: AbortSignal,
) => Promise<ReconcileResult | LastStep | void> | ReconcileResult | LastStep | void;

/** Runs steps in order. The result has the earliest requested requeue. */
export async function runSteps<Subject>(
  steps: readonly ReconcileStep<Subject>[],
  subject: Subject,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  let result: ReconcileResult = {};
  for (const step of steps) {
    const ended = (await step(subject, signal)) ?? {};
    result = earlierResult(result, ended);
    if ('isLast' in ended) {
      break;
    }
  }
  return result;
}

/**
 * Reconciles, then writes the status once, even after a failure, as Flux's deferred patch does. An error of the
 * reconciliation is rethrown; an error of the status write only if the reconciliation succeeded. When the controller
 * stops, no status is written.
 */
export async function withStatus(
  { failures, stopped }: ReconcileAttempt,
  writeStatus: (failure: Readiness | undefined, signal: AbortSignal) => Promise<ReconcileResult>,
  reconcile: () => Promise<ReconcileResult>,
): Promise<ReconcileResult> {
  let result: ReconcileResult = {};
  let thrown: { readonly error: unknown } | undefined;
  try {
    result = await reconcile();
  } catch (error) {
    thrown = { error };
  }
  const failure = thrown === undefined ? undefined : outcomeOfError(thrown.error, stopped, failures).failure;
  if (!stopped.aborted) {
    try {
      result = earlierResult(result, await writeStatus(failure, stopped));
    } catch (error) {
      thrown ??= { error };
    }
  }
  if (thrown !== undefined) {
    throw thrown.error;
  }
  return result;
}
