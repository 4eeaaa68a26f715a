// What a policy in monitor mode would have done to a request: data for the log, and for the status of the policy.
import { shortened } from '../values/index.ts';
import type { Review } from './review/admission-review.ts';
import { MAX_MONITORED_MESSAGE, MAX_MONITORED_NAME, MAX_MONITORED_USER } from './definition/limits.ts';
import { enforcedVerdict } from './evaluator.ts';
import type { LoadedPolicy } from './loaded-policy.ts';
import type { Judgement, Observation } from './verdict/observation.ts';

/**
 * A verdict in monitor mode that is not a plain admission. The request is named, with bounded texts without control
 * characters; of the objects nothing is contained but the name.
 */
export interface MonitoredVerdict extends Pick<Observation, 'policy' | 'operation' | 'kind' | 'namespace'> {
  readonly uid: string;
  /** False: the policy would have rejected the request. True: it would have changed it. */
  readonly allowed: boolean;
  /** Ends with `*` when the API server was to generate the rest. Absent for raw requests, like `user`. */
  readonly name?: string;
  readonly user?: string;
  readonly isDryRun: boolean;
  /** Of the denial. */
  readonly message?: string;
  readonly code?: number;
}

/**
 * What a policy in monitor mode would have done in protect mode. Undefined for a plain admission, and for policies that
 * protect or that were not evaluated.
 * @param observation of the same evaluation
 */
export function monitoredVerdict(
  policy: LoadedPolicy,
  review: Review,
  { outcome, verdict }: Judgement,
  { operation, kind, namespace }: Observation,
): MonitoredVerdict | undefined {
  if (policy.mode !== 'monitor' || policy.kind === 'failed' || outcome === 'exempt' || outcome === 'not-initialized') {
    return undefined;
  }
  const { allowed, patch, message, code } = enforcedVerdict(policy, verdict);
  if (allowed && patch === undefined) {
    return undefined;
  }
  const requester = review.requester();
  return {
    policy: policy.id,
    uid: printable(review.uid, MAX_MONITORED_NAME),
    allowed,
    ...(operation === undefined ? {} : { operation }),
    ...(kind === undefined ? {} : { kind }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(requester === undefined
      ? {}
      : { name: printable(requester.name, MAX_MONITORED_NAME), user: printable(requester.user, MAX_MONITORED_USER) }),
    isDryRun: requester?.isDryRun ?? false,
    ...(allowed || message === undefined ? {} : { message: printable(message, MAX_MONITORED_MESSAGE) }),
    ...(code === undefined ? {} : { code }),
  };
}

/** Valid Unicode without control characters. Cut first, because the text may be megabytes long. */
function printable(text: string, most: number): string {
  return shortened(text, most)
    .toWellFormed()
    .replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, ' ');
}
