import { isOwnBucket } from '../../resources/index.ts';
import { parseAdmissionReview } from '../admission-review.ts';
import { Evaluator } from '../evaluator.ts';
import type { Asking } from '../evaluator.ts';
import type { Observation } from '../observation.ts';
import { allowed, httpError, internalFailure, reviewAnswer } from '../response.ts';
import { ReviewError } from '../review-body.ts';
import { BucketReview, Deferred } from './bucket-review.ts';
import type { PolicyTable } from './policy-table.ts';

export interface AdmitOptions extends Omit<Asking, 'leftMs'> {
  /** Ids of policies that are not evaluated here: a review that one of them is for is deferred. */
  readonly slow?: ReadonlySet<string>;
  /**
   * Milliseconds that are left for the review. Policies that have not been evaluated then answer as timed out. Default: no
   * limit but those of the policies.
   */
  readonly deadlineMs?: number;
}

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
 * Answers a review for all policies of a bucket that it is for. `bucket` is the name of a shared bucket, or the id of a policy,
 * which is then asked without looking at its rules: the API server did, for the webhook that is the policy's own. A name that
 * no policy could have now is not found: nobody may take it for a permission. Synchronous, never throws.
 */
export function admit(table: PolicyTable, bucket: string, body: Uint8Array, options: AdmitOptions): Admission {
  try {
    if (isOwnBucket(bucket) ? table.get(bucket) === undefined : !SHARED_BUCKET.test(bucket)) {
      return { ...httpError(404, `unknown bucket: ${bucket}`), observations: [] };
    }
    const review = parseAdmissionReview(body);
    const { alwaysAcceptNamespace } = table.options;
    if (review.target === undefined || review.target.namespace === alwaysAcceptNamespace) {
      return { ...reviewAnswer(allowed(review.uid)), observations: [] };
    }
    const run = new BucketReview(table, { bucket, review, target: review.target, options });
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
