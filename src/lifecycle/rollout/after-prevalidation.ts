// What a trial of a revision on one replica means for the revision.
import type { PinnedModule, PrevalidationResult } from '../../control/index.ts';
import type { RevisionFacts } from './rollout-view.ts';

/** The wait after the first failure that may pass. Milliseconds. */
export const FIRST_RETRY_MS = 1_000;
/** The longest wait: a source that is down for hours is not asked more often than somebody would look. Milliseconds. */
export const LONGEST_RETRY_MS = 300_000;

/** What is to be written of a revision after its trial. */
export interface TriedRevision {
  readonly state: 'Validated' | 'Candidate' | 'Failed';
  readonly reason: string;
  readonly message: string;
  readonly modules: readonly PinnedModule[];
  readonly attempts: number;
  /** Milliseconds since 1970. */
  readonly nextRetry: number | undefined;
}

/**
 * What came of a trial. A failure that may pass is tried again after 1 s, 2 s, 4 s … 5 min, each shortened by up to a half by
 * chance, so that thousands of policies of one source do not come back at once.
 *
 * @param now milliseconds since 1970
 * @param random 0 to below 1
 */
export function afterPrevalidation(
  revision: Pick<RevisionFacts, 'attempts'>,
  result: PrevalidationResult,
  now: number,
  random: () => number = Math.random,
): TriedRevision {
  const attempts = revision.attempts + 1;
  if (result.ok) {
    return { state: 'Validated', reason: '', message: '', modules: result.modules, attempts, nextRetry: undefined };
  }
  const { reason, message, isTransient } = result;
  const wait = Math.min(FIRST_RETRY_MS * 2 ** Math.min(revision.attempts, 20), LONGEST_RETRY_MS) * (1 - random() / 2);
  return {
    state: isTransient ? 'Candidate' : 'Failed',
    reason,
    message,
    modules: [],
    attempts,
    nextRetry: isTransient ? now + Math.round(wait) : undefined,
  };
}
