// The shape of a reconciler: ordered steps of one type, then the status, whatever the steps ended with.
import type { Readiness } from '../resources/index.ts';
import { earlierResult, outcomeOfError, type ReconcileResult } from './reconcile-outcome.ts';

/** One attempt to reconcile a key. */
export interface ReconcileAttempt {
  /** Failures in a row before this attempt. */
  readonly failures: number;
  /** Aborted when the controller stops; not when the attempt takes too long. */
  readonly stopped: AbortSignal;
}

/** A step that is the last of its pass: those after it are for other cases. */
export interface LastStep extends ReconcileResult {
  readonly isLast: true;
}

/** One step of a reconciliation. Throws what `outcomeOfError` understands; the steps after it are then skipped. */
export type ReconcileStep<Subject> = (
  subject: Subject,
  signal: AbortSignal,
) => Promise<ReconcileResult | LastStep | void> | ReconcileResult | LastStep | void;

/** Runs steps in their order. The earliest time that one of them asks for is the result. */
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
 * Reconciles, then writes the status once, whatever the reconciliation ended with: as Flux's deferred patch does. What the
 * reconciliation threw is thrown on; an error of the status only where there is no other. Nothing is written when the controller
 * stops.
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
