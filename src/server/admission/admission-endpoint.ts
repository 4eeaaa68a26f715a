// The admission port: POST /validate/{id}, /audit/{id}, /validate_raw/{id}, and POST /admit/{bucket} for all policies
// of a bucket. Bodies are passed to the worker pool unparsed.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AdmissionTargets } from './admission-targets.ts';
import { reviewAnswer } from './review-answer.ts';
import { MAX_REVIEW_BYTES } from '../../engine/definition/index.ts';
import { EvaluationError } from '../../evaluation/index.ts';
import type { PoolAnswer, ReviewRoute, WorkerPool } from '../../evaluation/index.ts';
import { BodyBudget, readBody, RequestRefusal, sendError, sendJson } from '../../https/index.ts';
import type { BucketKnowledge } from '../policies/policy-source.ts';

/** The content type of API servers, with any parameters. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/** Receives the results of requests. */
export interface AdmissionListener {
  /** `status`: the HTTP status of the answer. */
  reviewed(route: ReviewRoute, answer: PoolAnswer, status: number, body: Uint8Array): void;
  refused(status: number, message: string): void;
  /** Whether a policy that workers do not have may still be loaded. */
  isLoading(policy: string): boolean;
  /** Whether the policies of buckets are known; see PolicySource. */
  buckets(): BucketKnowledge;
}

/** The request handler of the admission port. */
export function admissionHandler(
  pool: WorkerPool,
  listener: AdmissionListener,
): (request: IncomingMessage, response: ServerResponse) => void {
  const budget = new BodyBudget(MAX_REVIEW_BYTES);
  const targets = new AdmissionTargets();
  const policyRefusal = (id: string): RequestRefusal | undefined => {
    if (pool.has(id)) {
      return undefined;
    }
    return listener.isLoading(id)
      ? new RequestRefusal(503, `policy ${id} is being loaded; try again`)
      : new RequestRefusal(404, `unknown policy: ${id}`);
  };
  return (request, response) => {
    const refuse = (status: number, message: string): void => {
      listener.refused(status, message);
      request.resume();
      sendError(response, status, message);
    };
    const target = targets.of(request.url ?? '/');
    if (target instanceof RequestRefusal) {
      refuse(target.status, target.message);
      return;
    }
    const refusal =
      requestRefusal(request) ?? (target.route === 'admit' ? bucketRefusal(listener) : policyRefusal(target.name));
    if (refusal !== undefined) {
      if (refusal.status === 405) {
        response.setHeader('allow', 'POST');
      }
      refuse(refusal.status, refusal.message);
      return;
    }
    readBody(request, budget, (error, body) => {
      if (error !== undefined) {
        refuse(error.status, error.message);
        return;
      }
      try {
        pool.submit(target.route, target.name, body, target.requestTimeoutMs, (answer) => {
          // The answer first: a client waits for it.
          const { status, body: text } = reviewAnswer(target, answer.result);
          sendJson(response, status, text);
          listener.reviewed(target.route, answer, status, body);
        });
      } catch (failure) {
        const message = failure instanceof EvaluationError ? failure.message : 'Something went wrong';
        if (response.headersSent) {
          // The answer was sent; what failed came after it.
          listener.refused(500, message);
          return;
        }
        refuse(failure instanceof EvaluationError ? 503 : 500, message);
      }
    });
  };
}

/**
 * Why buckets cannot be served now, if so. A bucket without policies allows everything, so an unknown one must not be
 * served.
 */
function bucketRefusal(listener: AdmissionListener): RequestRefusal | undefined {
  switch (listener.buckets()) {
    case 'none':
      return new RequestRefusal(404, 'the policies of a file are in no buckets: expected /validate/{policy}');
    case 'unknown':
      return new RequestRefusal(503, 'the policies of the cluster are not known yet; try again');
    default:
      return undefined;
  }
}

/** Why a request is refused on any path, if so. */
function requestRefusal({ method, headers }: IncomingMessage): RequestRefusal | undefined {
  if (method !== 'POST') {
    return new RequestRefusal(405, `expected POST, got ${method ?? 'no method'}`);
  }
  const contentType = headers['content-type'] ?? '';
  return contentType === 'application/json' || JSON_TYPE.test(contentType)
    ? undefined
    : new RequestRefusal(
        415,
        `expected Content-Type: application/json, got ${contentType === '' ? 'none' : contentType}`,
      );
}
