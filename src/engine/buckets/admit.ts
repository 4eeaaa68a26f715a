import { policyOfBucket } from '../../resources/index.ts';
import { parseAdmissionReview } from '../admission-review.ts';
import { Evaluator } from '../evaluator.ts';
import type { Observation } from '../observation.ts';
import { allowed, httpError, internalFailure, reviewAnswer } from '../response.ts';
import { ReviewError } from '../review-body.ts';
import { BucketReview, Deferred } from './bucket-review.ts';
import type { AdmitOptions } from './bucket-review.ts';
import type { PolicyTable } from './policy-table.ts';

/** The answer to a review that an API server sent to a bucket. */
export type Admission =
  | {
      readonly status: number;
      readonly body: string;
      /** One for each time that a policy was asked. */
      readonly observations: readonly Observation[];
      readonly deferred?: never;
    }
  /** A slow policy is meant: evaluate the review where slow ones are. Nothing is to be noted about it here. */
  | { readonly deferred: true };

/** Names of buckets that policies share, see `policyMatch`. */
const SHARED_BUCKET =
  /^(?:validating|mutating)\.(?:fail|ignore)\.(?:exact|equivalent)\.(?:cluster|namespaced)(?:\.[a-z0-9]{1,63})?$/;

/**
 * Answers a review for all policies of a bucket that it is for. Where the bucket is that of one policy alone, that one is asked
 * without looking for others: the API server did, for the webhook that is the policy's own. A name that no policy could have
 * now is not found: nobody may take it for a permission. Synchronous, never throws.
 */
export function admit(table: PolicyTable, bucket: string, body: Uint8Array, options: AdmitOptions): Admission {
  try {
    // Names of buckets that policies are in need no second look.
    const isKnown = table.hasBucket(bucket);
    const owner = isKnown ? undefined : policyOfBucket(bucket);
    if (!isKnown && (owner === undefined ? !SHARED_BUCKET.test(bucket) : table.get(owner) === undefined)) {
      return { ...httpError(404, `unknown bucket: ${bucket}`), observations: [] };
    }
    const review = parseAdmissionReview(body);
    const { alwaysAcceptNamespace } = table.options;
    if (review.target === undefined || review.target.namespace === alwaysAcceptNamespace) {
      return { ...reviewAnswer(allowed(review.uid)), observations: [] };
    }
    const run = new BucketReview(table, { bucket, owner, review, target: review.target, options });
    return { ...reviewAnswer(run.answer()), observations: run.observations };
  } catch (error) {
    if (error instanceof Deferred) {
      return { deferred: true };
    }
    if (error instanceof ReviewError) {
      return { ...httpError(error.status, error.message), observations: [] };
    }
    new Evaluator(table.options).logFailure(bucket, error);
    return { ...internalFailure(), observations: [] };
  }
}
