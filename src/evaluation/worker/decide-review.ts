import {
  type BucketResult,
  type AdmitOptions,
  evaluate,
  judgeObject,
  type LoadedPolicy,
  type ObjectJudgement,
  type ObjectLookup,
  type ObjectVerdict,
  type Observation,
  type Review,
  UnknownObject,
} from '../../engine/index.ts';
import { isNamespaceOwner } from '../../engine/definition/index.ts';
import { type WorkerRoute, monotonicNow, type ReviewTerms } from '../evaluation-protocol.ts';
import type { WorkerPolicies } from './worker-policies.ts';

/** The decision about a review: a verdict, or why there is none. */
export type ReviewDecision =
  | Exclude<BucketResult, { readonly kind: 'unknown-bucket' }>
  /** It names a policy that this worker has not tried, and that may hold it for long. */
  | { readonly kind: 'deferred'; readonly owner?: undefined }
  /** There is no such policy or bucket. */
  | { readonly kind: 'unknown-target' }
  /** What policies say about an object. */
  | {
      readonly kind: 'judged';
      readonly verdicts: readonly ObjectVerdict[];
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
      return judged([judge(policies, policy, request)]);
    }
    const { verdict, observation, monitored, uses } = evaluate(policy, review, {
      route,
      objects,
      ...optionsOf(request),
    });
    return {
      kind: 'verdict',
      verdict,
      observations: [observation],
      monitored: monitored === undefined ? [] : [monitored],
      uses,
    };
  } catch (error) {
    if (error instanceof UnknownObject) {
      return { kind: 'unknown-object', object: error.object };
    }
    throw error;
  }
}

/** Has several policies judge an object, without those that have to be asked one by one: see WorkerPool.judge. */
export function judgeTogether(
  policies: WorkerPolicies,
  ids: readonly string[],
  request: DecisionRequest,
): ReviewDecision {
  const judgements: ObjectJudgement[] = [];
  for (const id of ids) {
    const policy = policies.get(id);
    if (policy === undefined || mustBeAlone(policies, id, request.terms)) {
      continue;
    }
    try {
      judgements.push(judge(policies, policy, request));
    } catch (error) {
      if (!(error instanceof UnknownObject)) {
        throw error;
      }
      if (error.object.kind === 'Namespace') {
        // Others are likely to need it, too.
        return { kind: 'unknown-object', object: error.object };
      }
    }
  }
  return judged(judgements);
}

/** Whether a policy may hold the worker for long, if it is not known to have timed out. */
function mustBeAlone(policies: WorkerPolicies, id: string, { slow, timedOut }: ReviewTerms): boolean {
  const owner = policies.ownerOf(id);
  const isSlow = slow?.includes(owner) === true || (slow !== null && isNamespaceOwner(owner) && !policies.isTried(id));
  return isSlow && timedOut?.some((one) => one === id || one.startsWith(`${id}/`)) !== true;
}

function judge(policies: WorkerPolicies, policy: LoadedPolicy, request: DecisionRequest): ObjectJudgement {
  const { review, objects } = request;
  return judgeObject(policy, review, { objects, matcher: policies.matcherOf(policy.id), ...optionsOf(request) });
}

function judged(judgements: readonly ObjectJudgement[]): ReviewDecision {
  return {
    kind: 'judged',
    verdicts: judgements.map(({ verdict }) => verdict),
    observations: judgements.flatMap(({ observation }) => observation ?? []),
  };
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
