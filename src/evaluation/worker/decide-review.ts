import {
  type BucketResult,
  type AdmitOptions,
  evaluate,
  judgeObject,
  type ObjectLookup,
  type ObjectVerdict,
  type Observation,
  type Review,
  UnknownObject,
} from '../../engine/index.ts';
import { type WorkerRoute, monotonicNow, type ReviewTerms } from '../evaluation-protocol.ts';
import type { WorkerPolicies } from './worker-policies.ts';

/** The decision about a review: a verdict, or why there is none. */
export type ReviewDecision =
  | Exclude<BucketResult, { readonly kind: 'unknown-bucket' }>
  /** It names a policy that this worker has not tried, and that may hold it for long. */
  | { readonly kind: 'deferred'; readonly owner?: undefined }
  /** There is no such policy or bucket. */
  | { readonly kind: 'unknown-target' }
  /** What a policy says about an object. */
  | {
      readonly kind: 'judged';
      readonly verdict: ObjectVerdict;
      readonly observations: readonly Observation[];
    };

/** A review, and the policy or bucket that decides it. */
export interface DecisionRequest extends Pick<AdmitOptions, 'onUnitStart' | 'onUnitEnd'> {
  readonly review: Review;
  readonly route: WorkerRoute;
  /** The id of the policy, or the name of the bucket. */
  readonly target: string;
  readonly terms: ReviewTerms;
  readonly objects: ObjectLookup;
}

/** Decides a review by one policy, or by the policies of a bucket that match it. */
export function decideReview(policies: WorkerPolicies, request: DecisionRequest): ReviewDecision {
  return request.route === 'admit' ? byBucket(policies, request) : byPolicy(policies, request, request.route);
}

function byPolicy(
  policies: WorkerPolicies,
  request: DecisionRequest,
  route: Exclude<WorkerRoute, 'admit'>,
): ReviewDecision {
  const policy = policies.get(request.target);
  if (policy === undefined) {
    return { kind: 'unknown-target' };
  }
  const { review, objects, terms } = request;
  if (terms.slow !== null && !policies.isTried(request.target)) {
    return { kind: 'deferred' };
  }
  try {
    if (route === 'object') {
      const matcher = policies.matcherOf(request.target);
      const judged = judgeObject(policy, review, { objects, matcher, ...optionsOf(request) });
      return {
        kind: 'judged',
        verdict: judged.verdict,
        observations: judged.observation === undefined ? [] : [judged.observation],
      };
    }
    const { verdict, observation, monitored } = evaluate(policy, review, { route, objects, ...optionsOf(request) });
    return {
      kind: 'verdict',
      verdict,
      observations: [observation],
      monitored: monitored === undefined ? [] : [monitored],
    };
  } catch (error) {
    if (error instanceof UnknownObject) {
      return { kind: 'unknown-object', object: error.object };
    }
    throw error;
  }
}

function byBucket(policies: WorkerPolicies, request: DecisionRequest): ReviewDecision {
  const { buckets } = policies;
  if (buckets === undefined) {
    throw new Error('expected a worker that was started for reviews of buckets');
  }
  const { target, review, objects, terms } = request;
  const admission = buckets.admit(buckets.table, target, review, {
    ...optionsOf(request),
    objects,
    ...(terms.slow === null ? {} : { slow: new Set(terms.slow), isUntried: (id) => !policies.isTried(id) }),
    deadlineMs: terms.expiresAt - monotonicNow(),
  });
  return admission.kind === 'unknown-bucket' ? { kind: 'unknown-target' } : admission;
}

function optionsOf({
  terms,
  onUnitStart,
  onUnitEnd,
}: DecisionRequest): Pick<AdmitOptions, 'timedOut' | 'onUnitStart' | 'onUnitEnd'> {
  return {
    ...(terms.timedOut === null ? {} : { timedOut: new Set(terms.timedOut) }),
    ...(onUnitStart && { onUnitStart }),
    ...(onUnitEnd && { onUnitEnd }),
  };
}
