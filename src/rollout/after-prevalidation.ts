// The next status of a revision after its pre-validation.
import type { PinnedModule } from '../control/index.ts';
import type { RevisionFacts } from './rollout-view.ts';

/** Delay after the first transient failure. Milliseconds. */
const FIRST_RETRY_MS = 1_000;
/** Longest delay: limits the load on a source that is down for hours. Milliseconds. */
export const LONGEST_RETRY_MS = 300_000;

/** What a pre-validation found, by a replica or by the controller itself. */
export type PrevalidationOutcome =
  | { readonly ok: true; readonly modules: readonly PinnedModule[]; readonly warnings?: readonly string[] }
  | {
      readonly ok: false;
      readonly reason: string;
      readonly message: string;
      /** Whether a retry may succeed. */
      readonly isTransient: boolean;
      /** The fingerprint of the parameters for which it failed. */
      readonly parameters?: string;
    };

/** The status of a revision after its pre-validation. */
export interface PrevalidatedRevision {
  readonly state: 'Validated' | 'Candidate' | 'Failed';
  readonly reason: string;
  readonly message: string;
  readonly modules: readonly PinnedModule[];
  readonly warnings: readonly string[];
  readonly attempts: number;
  /** Milliseconds since 1970. */
  readonly nextRetry: number | undefined;
  /** The fingerprint of the parameters for which it failed: it is tried again, not before `nextRetry`, when they change. */
  readonly triedParameters?: string | undefined;
}

/**
 * The status after a pre-validation. A transient failure is retried after 1 s, 2 s, 4 s … 5 min, each reduced at random
 * by up to a half, so that thousands of policies with one source are not retried at once. A failure for parameters is retried
 * when they change, and then no sooner either, so that tenants whose data flap do not keep policy servers busy.
 *
 * @param now milliseconds since 1970
 * @param random 0 to below 1
 */
export function afterPrevalidation(
  revision: Pick<RevisionFacts, 'attempts'>,
  result: PrevalidationOutcome,
  now: number,
  random: () => number = Math.random,
): PrevalidatedRevision {
  const attempts = revision.attempts + 1;
  if (result.ok) {
    const { modules, warnings = [] } = result;
    const valid = { state: 'Validated', reason: '', message: '', modules, warnings, attempts } as const;
    return { ...valid, nextRetry: undefined, triedParameters: undefined };
  }
  const { reason, message, isTransient, parameters: triedParameters } = result;
  const wait = Math.min(FIRST_RETRY_MS * 2 ** Math.min(revision.attempts, 20), LONGEST_RETRY_MS) * (1 - random() / 2);
  return {
    state: isTransient ? 'Candidate' : 'Failed',
    reason,
    message,
    modules: [],
    warnings: [],
    attempts,
    nextRetry: isTransient || triedParameters !== undefined ? now + Math.round(wait) : undefined,
    triedParameters,
  };
}
