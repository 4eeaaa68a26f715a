// The port that the API server calls: POST /validate/{id}, /audit/{id}, /validate_raw/{id}, and
// POST /admit/{bucket} for all policies of a bucket at once.
// What is read here is passed on as bytes; who looks into a review is for the pool to say.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { AdmissionTargets } from './admission-targets.ts';
import { reviewAnswer } from './review-answer.ts';
import { EvaluationError } from '../../evaluation/index.ts';
import type { Answer, Route, WorkerPool } from '../../evaluation/index.ts';
import { BodyBudget, readBody, RequestRefused, sendError, sendJson } from '../../https/index.ts';
import type { BucketKnowledge } from '../policies/policy-source.ts';

/** What API servers say, and what else means the same. */
const JSON_TYPE = /^application\/json\s*(?:;|$)/i;

/** What the endpoint tells about the requests that it dealt with. */
export interface AdmissionListener {
  /** `status`: what it was answered with. */
  reviewed(route: Route, answer: Answer, status: number): void;
  refused(status: number, message: string): void;
  /** Whether a policy that no worker has is on its way, or may be because nothing has been read yet. */
  isLoading(policy: string): boolean;
  /** Whether it is known which policies a bucket has; see PolicySource. */
  buckets(): BucketKnowledge;
}

/** The request handler of the admission port. */
export function admissionHandler(
  pool: WorkerPool,
  listener: AdmissionListener,
): (request: IncomingMessage, response: ServerResponse) => void {
  const budget = new BodyBudget();
  const targets = new AdmissionTargets();
  const refusedPolicy = (id: string): RequestRefused | undefined => {
    if (pool.has(id)) {
      return undefined;
    }
    return listener.isLoading(id)
      ? new RequestRefused(503, `policy ${id} is being loaded; try again`)
      : new RequestRefused(404, `unknown policy: ${id}`);
  };
  return (request, response) => {
    const refuse = (status: number, message: string): void => {
      listener.refused(status, message);
      request.resume();
      sendError(response, status, message);
    };
    const target = targets.of(request.url ?? '/');
    if (target instanceof RequestRefused) {
      refuse(target.status, target.message);
      return;
    }
    const refused =
      refusedRequest(request) ?? (target.route === 'admit' ? refusedBucket(listener) : refusedPolicy(target.name));
    if (refused !== undefined) {
      if (refused.status === 405) {
        response.setHeader('allow', 'POST');
      }
      refuse(refused.status, refused.message);
      return;
    }
    readBody(request, budget, (error, body) => {
      if (error !== undefined) {
        refuse(error.status, error.message);
        return;
      }
      try {
        pool.submit(target.route, target.name, body, target.patienceMs, (answer) => {
          // First of all: somebody waits for it.
          const { status, body: text } = reviewAnswer(target, answer.result);
          sendJson(response, status, text);
          listener.reviewed(target.route, answer, status);
        });
      } catch (failure) {
        const message = failure instanceof EvaluationError ? failure.message : 'Something went wrong';
        if (response.headersSent) {
          // Whoever asked has the answer; what failed came after it.
          listener.refused(500, message);
          return;
        }
        refuse(failure instanceof EvaluationError ? 503 : 500, message);
      }
    });
  };
}

/** Why buckets cannot be asked about now, if so. One that no policy is in allows everything. */
function refusedBucket(listener: AdmissionListener): RequestRefused | undefined {
  switch (listener.buckets()) {
    case 'none':
      return new RequestRefused(404, 'the policies of a file are in no buckets: expected /validate/{policy}');
    case 'unknown':
      return new RequestRefused(503, 'the policies of the cluster are not known yet; try again');
    default:
      return undefined;
  }
}

/** Why a request is none to answer, whatever it asks for. */
function refusedRequest({ method, headers }: IncomingMessage): RequestRefused | undefined {
  if (method !== 'POST') {
    return new RequestRefused(405, `expected POST, got ${method ?? 'no method'}`);
  }
  const contentType = headers['content-type'] ?? '';
  return contentType === 'application/json' || JSON_TYPE.test(contentType)
    ? undefined
    : new RequestRefused(
        415,
        `expected Content-Type: application/json, got ${contentType === '' ? 'none' : contentType}`,
      );
}
