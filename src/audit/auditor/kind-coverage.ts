// What is known of one kind by a policy (pure).
import { type ApiResource, ApiError } from '../../cluster/index.ts';
import { type Counts, type Coverage, type failedList, judgedState } from '../coverage.ts';
import type { PolicyVersion } from './policy-version.ts';

const EXPIRED = 410;
/** Bookmarks come every minute. Without any for this time after an error, changes of a kind are not known. Milliseconds. */
const UNHEARD_MS = 150_000;

/** What is known of a kind, by one policy. */
interface KindFacts {
  readonly counts: Counts;
  /** Findings that are only counted. */
  readonly unlisted: number;
  /** Objects that were read so far. */
  readonly objects: number;
  /** When all objects were judged by the policy as it is now. Milliseconds since 1970. */
  readonly scannedAt: number | undefined;
  /** Why the kind cannot be read now. */
  readonly failure: ReturnType<typeof failedList> | undefined;
}

export function kindCoverage(
  { group, version, resource, kind, namespaced }: ApiResource,
  { name, namespace, assumes }: Pick<PolicyVersion, 'name' | 'namespace' | 'assumes'>,
  facts: KindFacts,
): Coverage {
  const { counts, unlisted, scannedAt } = facts;
  return {
    policy: name,
    kind: { group, version, resource, kind, namespaced },
    ...(namespace === undefined ? {} : { namespace }),
    ...stateOf(facts),
    ...(assumes === undefined ? {} : { assumes }),
    counts,
    ...(unlisted === 0 ? {} : { unlisted }),
    ...(scannedAt === undefined ? {} : { scannedAt: new Date(scannedAt).toISOString() }),
  };
}

function stateOf({
  counts,
  objects,
  scannedAt,
  failure,
}: KindFacts): Pick<Coverage, 'state' | 'reason' | 'message' | 'missingRule'> {
  if (failure !== undefined) {
    return failure;
  }
  return scannedAt === undefined
    ? { state: 'Pending', reason: 'NotScanned', message: `${objects} objects were read so far` }
    : judgedState(counts);
}

/** Whether a kind cannot be read: at all before the first list, later when the cluster refuses, or dropped connections do not come back. */
export function isOutage(error: unknown, isListed: boolean, lagMs: number): boolean {
  const isRefused = error instanceof ApiError && error.code !== EXPIRED;
  return error !== undefined && (!isListed || isRefused || lagMs > UNHEARD_MS);
}
