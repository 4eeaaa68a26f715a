// Paths of the admission port.
import { RequestRefusal } from '../../https/index.ts';
import type { ReviewRoute } from '../../evaluation/index.ts';

/** The longest time that an API server waits for a webhook without a timeout. Milliseconds. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** The longest webhook timeout in Kubernetes. Milliseconds. */
const MAX_WEBHOOK_TIMEOUT_MS = 30_000;
/** Reserved for the answer's way back before the API server gives up. Milliseconds. */
const ANSWER_MARGIN_MS = 250;

/** Maximum number of cached paths: more than the webhooks of one server. Clients may send others. */
const MAX_CACHED = 4_096;
/** Maximum length of a cached path: the longest bucket name, the route and the timeout. Characters. */
const MAX_CACHED_LENGTH = 600;

const ROUTES: ReadonlyMap<string, ReviewRoute> = new Map([
  ['validate', 'validate'],
  ['audit', 'audit'],
  ['validate_raw', 'validate_raw'],
  ['admit', 'admit'],
]);
/** Names of buckets and ids of policies: Kubernetes names joined by dots. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{0,511}$/;

/** The target of a request. */
export interface AdmissionTarget {
  readonly route: ReviewRoute;
  /** The id of a policy, or the name of a bucket. */
  readonly name: string;
  /** How long the client waits. Milliseconds. */
  readonly requestTimeoutMs: number;
}

/** Parses paths with their queries. API servers always call the same few, which are cached. */
export class AdmissionTargets {
  readonly #known = new Map<string, AdmissionTarget>();

  /** The target of a path, or a refusal: 404, or 400 for an invalid name. */
  of(url: string): AdmissionTarget | RequestRefusal {
    const known = this.#known.get(url);
    if (known !== undefined) {
      return known;
    }
    const target = parseTarget(url);
    if (!(target instanceof RequestRefusal) && url.length <= MAX_CACHED_LENGTH) {
      if (this.#known.size >= MAX_CACHED) {
        this.#known.clear();
      }
      this.#known.set(url, target);
    }
    return target;
  }
}

function parseTarget(url: string): AdmissionTarget | RequestRefusal {
  const query = url.indexOf('?');
  const path = query === -1 ? url : url.slice(0, query);
  const slash = path.indexOf('/', 1);
  const route = ROUTES.get(path.slice(1, slash));
  if (slash === -1 || route === undefined) {
    return new RequestRefusal(
      404,
      `no such path: expected /admit/{bucket}, /validate/{policy}, /audit/{policy} or /validate_raw/{policy}`,
    );
  }
  const name = decoded(path.slice(slash + 1));
  if (name === undefined) {
    return new RequestRefusal(400, 'the policy in the path is not valid percent-encoded UTF-8');
  }
  if (route === 'admit' && !BUCKET.test(name)) {
    return new RequestRefusal(400, 'expected the name of a bucket, as in /admit/validating.fail.equivalent.cluster.v1');
  }
  return { route, name, requestTimeoutMs: query === -1 ? DEFAULT_TIMEOUT_MS : requestTimeout(url.slice(query + 1)) };
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

/** API servers add the webhook timeout to the URL, as in `?timeout=10s`. */
function requestTimeout(query: string): number {
  const match = /(?:^|&)timeout=(\d{1,6})(ms|s)(?:&|$)/.exec(query);
  if (match === null) {
    return DEFAULT_TIMEOUT_MS;
  }
  const ms = Number(match[1]) * (match[2] === 's' ? 1000 : 1);
  return Math.max(ANSWER_MARGIN_MS, Math.min(ms, MAX_WEBHOOK_TIMEOUT_MS) - ANSWER_MARGIN_MS);
}
