// What the paths of the admission port ask for.
import { RequestRefused } from '../../https/index.ts';
import type { Route } from '../../evaluation/index.ts';

/** How long the API server waits for a webhook at most, when its request does not say. Milliseconds. */
const DEFAULT_PATIENCE_MS = 10_000;
/** The longest webhook timeout that Kubernetes allows. Milliseconds. */
const LONGEST_PATIENCE_MS = 30_000;
/** Kept between our answer and the moment at which the API server gives up. Milliseconds. */
const PATIENCE_MARGIN_MS = 250;

/** Paths that are kept: more than the webhooks of one server. Anybody may ask for others. */
const MAX_KNOWN = 4_096;
/** The longest of them: the longest name of a bucket, the route and the timeout. Characters. */
const MAX_KNOWN_LENGTH = 600;

const ROUTES: ReadonlyMap<string, Route> = new Map([
  ['validate', 'validate'],
  ['audit', 'audit'],
  ['validate_raw', 'validate_raw'],
  ['admit', 'admit'],
]);
/** Names of buckets and ids of policies: Kubernetes' names joined by dots. */
const BUCKET = /^[a-z0-9][a-z0-9.-]{0,511}$/;

/** What a request asks for. */
export interface AdmissionTarget {
  readonly route: Route;
  /** The id of a policy, or the name of a bucket. */
  readonly name: string;
  /** How long whoever asks waits. Milliseconds. */
  readonly patienceMs: number;
}

/** Reads paths, with their queries. API servers ask for the same few for as long as they run: those are read once. */
export class AdmissionTargets {
  readonly #known = new Map<string, AdmissionTarget>();

  /** What a path asks for, or why it is none: 404, or 400 for a name that cannot be. */
  of(url: string): AdmissionTarget | RequestRefused {
    const known = this.#known.get(url);
    if (known !== undefined) {
      return known;
    }
    const target = parseTarget(url);
    if (!(target instanceof RequestRefused) && url.length <= MAX_KNOWN_LENGTH) {
      if (this.#known.size >= MAX_KNOWN) {
        this.#known.clear();
      }
      this.#known.set(url, target);
    }
    return target;
  }
}

function parseTarget(url: string): AdmissionTarget | RequestRefused {
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
  const name = decoded(path.slice(slash + 1));
  if (name === undefined) {
    return new RequestRefused(400, 'the policy in the path is not valid percent-encoded UTF-8');
  }
  if (route === 'admit' && !BUCKET.test(name)) {
    return new RequestRefused(400, 'expected the name of a bucket, as in /admit/validating.fail.equivalent.cluster.v1');
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
