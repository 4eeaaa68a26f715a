// The port that the API server calls: POST /validate/{id}, /audit/{id}, /validate_raw/{id} (contract 3.3), and
// POST /admit/{bucket} for all policies of a bucket at once.
// What is read here is passed on as bytes; who looks into a review is for the pool to say.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { RequestRefused, ServerError } from './errors.ts';
import type { Route } from './evaluation-protocol.ts';
import { BodyBudget, readBody, sendError, sendJson } from './http-body.ts';
import type { BucketKnowledge } from './policy-source.ts';
import type { Answer } from './review-job.ts';
import type { WorkerPool } from './worker-pool.ts';

/** How long the API server waits for a webhook at most, when its request does not say. Milliseconds. */
const DEFAULT_PATIENCE_MS = 10_000;
/** The longest webhook timeout that Kubernetes allows. Milliseconds. */
const LONGEST_PATIENCE_MS = 30_000;
/** Kept between our answer and the moment at which the API server gives up. Milliseconds. */
const PATIENCE_MARGIN_MS = 250;

const ROUTES: ReadonlyMap<string, Route> = new Map([
  ['validate', 'validate'],
  ['audit', 'audit'],
  ['validate_raw', 'validate_raw'],
  ['admit', 'admit'],
]);
/** Names of buckets and ids of policies: Kubernetes' names joined by dots. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{0,511}$/;

/** What the endpoint tells about the requests that it dealt with. */
export interface AdmissionListener {
  reviewed(route: Route, answer: Answer): void;
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
    const target = parseTarget(request);
    if (target instanceof RequestRefused) {
      if (target.status === 405) {
        response.setHeader('allow', 'POST');
      }
      refuse(target.status, target.message);
      return;
    }
    const refused = target.route === 'admit' ? refusedBucket(target.name, listener) : refusedPolicy(target.name);
    if (refused !== undefined) {
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
          listener.reviewed(target.route, answer);
          sendJson(response, answer.status, answer.body);
        });
      } catch (failure) {
        const message = failure instanceof ServerError ? failure.message : 'Something went wrong';
        refuse(failure instanceof ServerError ? 503 : 500, message);
      }
    });
  };
}

/** Why a bucket cannot be asked about now, if so. One that no policy is in allows everything. */
function refusedBucket(bucket: string, listener: AdmissionListener): RequestRefused | undefined {
  if (!BUCKET.test(bucket)) {
    return new RequestRefused(400, 'expected the name of a bucket, as in /admit/validating.fail.equivalent.cluster.v1');
  }
  switch (listener.buckets()) {
    case 'none':
      return new RequestRefused(404, 'the policies of a file are in no buckets: expected /validate/{policy}');
    case 'unknown':
      return new RequestRefused(503, 'the policies of the cluster are not known yet; try again');
    default:
      return undefined;
  }
}

interface Target {
  readonly route: Route;
  /** The id of a policy, or the name of a bucket. */
  readonly name: string;
  readonly patienceMs: number;
}

function parseTarget(request: IncomingMessage): Target | RequestRefused {
  const url = request.url ?? '/';
  const query = url.indexOf('?');
  const path = query === -1 ? url : url.slice(0, query);
  const slash = path.indexOf('/', 1);
  const route = ROUTES.get(path.slice(1, slash));
  if (slash === -1 || route === undefined) {
    return new RequestRefused(
      404,
      `no such path: expected /admit/{bucket}, /validate/{policy}, /audit/{policy} or /validate_raw/{policy}`,
    );
  }
  if (request.method !== 'POST') {
    return new RequestRefused(405, `expected POST, got ${request.method ?? 'no method'}`);
  }
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers['content-type'] ?? '')) {
    return new RequestRefused(
      415,
      `expected Content-Type: application/json, got ${request.headers['content-type'] ?? 'none'}`,
    );
  }
  const name = decoded(path.slice(slash + 1));
  if (name === undefined) {
    return new RequestRefused(400, 'the policy in the path is not valid percent-encoded UTF-8');
  }
  return { route, name, patienceMs: query === -1 ? DEFAULT_PATIENCE_MS : patience(url.slice(query + 1)) };
}

function decoded(segment: string): string | undefined {
  if (!segment.includes('%')) {
    return segment;
  }
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** The API server adds its webhook timeout to the URL, as in `?timeout=10s`. */
function patience(query: string): number {
  const match = /(?:^|&)timeout=(\d{1,6})(ms|s)(?:&|$)/.exec(query);
  if (match === null) {
    return DEFAULT_PATIENCE_MS;
  }
  const ms = Number(match[1]) * (match[2] === 's' ? 1000 : 1);
  return Math.max(PATIENCE_MARGIN_MS, Math.min(ms, LONGEST_PATIENCE_MS) - PATIENCE_MARGIN_MS);
}
