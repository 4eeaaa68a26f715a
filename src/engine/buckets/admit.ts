import { policyOfBucket } from '../../resources/index.ts';
import type { Review } from '../admission-review.ts';
import type { Observation } from '../observation.ts';
import { allowed } from '../verdict.ts';
import type { Verdict } from '../verdict.ts';
import { BucketReview, Deferred } from './bucket-review.ts';
import type { AdmitOptions } from './bucket-review.ts';
import type { PolicyTable } from './policy-table.ts';

/** What the policies of a bucket decide about a review. */
export type Admission =
  | {
      readonly kind: 'verdict';
      readonly verdict: Verdict;
      /** One for each time that a policy was asked. */
      readonly observations: readonly Observation[];
    }
  /** The review is for a slow policy: nothing of it was evaluated. */
  | { readonly kind: 'deferred' }
  /** No policy can have a bucket of that name now: nobody may take it for a permission. */
  | { readonly kind: 'unknown-bucket' };

/** Names of buckets that policies share, see `policyMatch`. */
const SHARED_BUCKET =
  /^(?:validating|mutating)\.(?:fail|ignore)\.(?:exact|equivalent)\.(?:cluster|namespaced)(?:\.[a-z0-9]{1,63})?$/;

/**
 * Evaluates a review by all policies of a bucket that it is for. Where the bucket is that of one policy alone, that one is asked
 * without looking for others: the API server did, for the webhook that is the policy's own. Synchronous; throws only for
 * faults of the engine itself.
 */
export function admit(table: PolicyTable, bucket: string, review: Review, options: AdmitOptions): Admission {
  const owner = table.hasBucket(bucket) ? undefined : policyOfBucket(bucket);
  if (!isBucket(table, bucket, owner)) {
    return { kind: 'unknown-bucket' };
  }
  const { target } = review;
  if (target === undefined || target.namespace === table.options.alwaysAcceptNamespace) {
    return { kind: 'verdict', verdict: allowed(), observations: [] };
  }
  const run = new BucketReview(table, { bucket, owner, review, target, options });
  try {
    return { kind: 'verdict', verdict: run.verdict(), observations: run.observations };
  } catch (error) {
    if (error instanceof Deferred) {
      return { kind: 'deferred' };
    }
    throw error;
  }
}

/** `owner`: the policy that a bucket of a policy alone names; such buckets are there while the policy is. */
function isBucket(table: PolicyTable, bucket: string, owner: string | undefined): boolean {
  return owner === undefined ? table.hasBucket(bucket) || SHARED_BUCKET.test(bucket) : table.get(owner) !== undefined;
}
