import { isPodTemplatesBucket, policyOfBucket } from '../../resources/index.ts';
import type { Review } from '../review/admission-review.ts';
import type { MonitoredVerdict } from '../monitored-verdict.ts';
import { UnknownObject } from '../review/object-lookup.ts';
import type { ObjectReference } from '../review/object-lookup.ts';
import type { Observation } from '../verdict/observation.ts';
import { podTemplateOf } from '../pod-templates/pod-template.ts';
import { allowed } from '../verdict/verdict.ts';
import type { Verdict } from '../verdict/verdict.ts';
import { BucketReview, Deferred } from './bucket-review.ts';
import type { AdmitOptions } from './bucket-review.ts';
import type { PolicyTable } from './policy-table.ts';

/** Result of a review by the policies of a bucket. */
export type BucketResult =
  | {
      readonly kind: 'verdict';
      readonly verdict: Verdict;
      /** One per evaluation of a policy. */
      readonly observations: readonly Observation[];
      /** At most one per policy. */
      readonly monitored: readonly MonitoredVerdict[];
      /** Exceptions that it uses, by `metadata.uid`. */
      readonly uses: readonly string[];
    }
  /** The review matches a policy of a slow owner, or an untried one: no policy was evaluated. */
  | { readonly kind: 'deferred'; readonly owner: string }
  /** The review needs an object that is not known yet: no verdict. */
  | { readonly kind: 'unknown-object'; readonly object: ObjectReference }
  /** No bucket of that name can exist. Must not be answered as allowed. */
  | { readonly kind: 'unknown-bucket' };

/** No policy is evaluated. */
const ADMITTED: BucketResult = { kind: 'verdict', verdict: allowed(), observations: [], monitored: [], uses: [] };

/** Names of shared buckets, see `policyMatch`. */
const SHARED_BUCKET =
  /^(?:validating|mutating)\.(?:fail|ignore)\.(?:exact|equivalent)\.(?:cluster|namespaced)(?:\.[a-z0-9]{1,63})?$/;

/**
 * Evaluates a review by all policies of the bucket that it matches. An own bucket names its only policy, which is
 * evaluated without a lookup by rules and labels. Synchronous; throws only for faults of the engine itself.
 */
export function admit(table: PolicyTable, bucket: string, review: Review, options: AdmitOptions): BucketResult {
  const owner = table.hasBucket(bucket) ? undefined : policyOfBucket(bucket);
  if (!isBucket(table, bucket, owner)) {
    return { kind: 'unknown-bucket' };
  }
  const { target } = review;
  if (target === undefined || target.namespace === table.options.alwaysAcceptNamespace) {
    return ADMITTED;
  }
  const isOfTemplates = isPodTemplatesBucket(bucket);
  const template = isOfTemplates ? podTemplateOf(review, target) : undefined;
  if (isOfTemplates && template === undefined) {
    return ADMITTED;
  }
  const run = new BucketReview(table, { bucket, owner, review, target, template, options });
  try {
    const verdict = run.verdict();
    return { kind: 'verdict', verdict, observations: run.observations, monitored: run.monitored(), uses: run.uses() };
  } catch (error) {
    if (error instanceof Deferred) {
      return { kind: 'deferred', owner: error.owner };
    }
    if (error instanceof UnknownObject) {
      return { kind: 'unknown-object', object: error.object };
    }
    throw error;
  }
}

/** `owner`: the policy whose own bucket this is. An own bucket exists as long as its policy. */
function isBucket(table: PolicyTable, bucket: string, owner: string | undefined): boolean {
  return owner === undefined ? table.hasBucket(bucket) || SHARED_BUCKET.test(bucket) : table.get(owner) !== undefined;
}
