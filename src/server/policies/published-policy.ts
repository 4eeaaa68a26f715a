// What workers get for a policy, and the buckets for which API servers may send its reviews.
import { isDeepStrictEqual } from 'node:util';
import type { FailurePolicy } from '../../engine/index.ts';
import type { TableEntry } from '../../evaluation/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import {
  failureText,
  type LoadedRevision,
  type RegistryEntry,
  type PublishedPolicy,
  type Slot,
  targetOf,
} from './registry-entry.ts';
import { failurePolicyOf } from './wanted-policy.ts';

/**
 * How long a policy is evaluated in its former buckets: API servers with the old webhook configuration still use the
 * old bucket, and those with the new one may reach a replica with the old revision. Longer than either lasts, and than
 * the longest wait for a write of configurations (15 s). Milliseconds.
 */
export const LINGER_MS = 60_000;

/** What to publish to workers; the same object when nothing changed. Updates the entry's buckets. */
export function nextPublished(entry: RegistryEntry): PublishedPolicy | undefined {
  const wanted = enforced(entry, wantedPublished(entry));
  const buckets = bucketsOf(entry, wanted);
  entry.lingering = [...new Set([...entry.lingering, ...entry.buckets])].filter((bucket) => !buckets.includes(bucket));
  entry.buckets = buckets;
  const next = withBuckets(wanted, [...buckets, ...entry.lingering].toSorted());
  return isSame(next, entry.published) ? entry.published : next;
}

/** Without a match, a policy that is not enforced is not evaluated while it cannot be loaded. */
function enforced({ wanted }: RegistryEntry, published: PublishedPolicy | undefined): PublishedPolicy | undefined {
  const isEnforced = published?.kind === 'serving' || wanted?.serving?.isEnforced !== false;
  return published === undefined || isEnforced ? published : { ...published, match: undefined };
}

/** Includes the buckets of the wanted version while another one serves instead: API servers already use them. */
function bucketsOf({ wanted }: RegistryEntry, published: PublishedPolicy | undefined): readonly string[] {
  const revisions = [published, wanted?.serving, ...(wanted?.staged ?? [])];
  return [...new Set([...revisions.flatMap((one) => one?.match?.bucket ?? []), ...(wanted?.buckets ?? [])])];
}

/** Loaded versions are compared by identity. */
function isSame(one: PublishedPolicy | undefined, other: PublishedPolicy | undefined): boolean {
  const loadedOf = (published: PublishedPolicy | undefined): unknown =>
    published?.kind === 'serving' ? published.loaded : undefined;
  return loadedOf(one) === loadedOf(other) && isDeepStrictEqual(one, other);
}

function withBuckets(published: PublishedPolicy | undefined, buckets: readonly string[]): PublishedPolicy | undefined {
  if (published === undefined) {
    return undefined;
  }
  const { alsoIn: _before, ...rest } = published;
  const others = buckets.filter((bucket) => bucket !== published.match?.bucket);
  return published.match === undefined || others.length === 0 ? rest : { ...rest, alsoIn: others };
}

function wantedPublished(entry: RegistryEntry): PublishedPolicy | undefined {
  const { wanted, standIn, published } = entry;
  const target = targetOf(entry);
  if (target?.loaded !== undefined) {
    return serving(target.loaded, wanted?.serving?.match ?? target.loaded.match);
  }
  if (wanted?.failed !== undefined) {
    const { name, uid, revision: number, message, failurePolicy, match } = wanted.failed;
    return { kind: 'failed', of: { name, uid, number }, message, failurePolicy, match };
  }
  // A serving version keeps its own match rules until its successor serves.
  if (published?.kind === 'serving') {
    return serving(published.loaded, published.loaded.match ?? wanted?.serving?.match);
  }
  if (standIn?.loaded !== undefined) {
    return serving(standIn.loaded, standIn.loaded.match ?? wanted?.serving?.match);
  }
  const mayStillServe = standIn !== undefined && standIn.failure === undefined;
  const failed = target ?? standIn;
  if (failed?.failure === undefined || mayStillServe) {
    return whileLoading(entry, target);
  }
  return {
    kind: 'failed',
    of: failed.revision,
    message: failureText(entry, failed),
    failurePolicy: failurePolicyOfSlot(failed),
    match: wanted?.serving?.match ?? failed.match,
  };
}

function serving(loaded: LoadedRevision, match: PolicyMatch | undefined): PublishedPolicy {
  return { kind: 'serving', loaded, match };
}

/** The answer while no version is loaded yet. */
function whileLoading(
  { published, wanted, standIn }: RegistryEntry,
  target: Slot | undefined,
): PublishedPolicy | undefined {
  const coming = target ?? standIn;
  const match = wanted?.serving?.match ?? standIn?.match;
  if (coming === undefined || match === undefined || published?.kind === 'serving') {
    return published;
  }
  if (published?.kind === 'failed') {
    return { ...published, match };
  }
  const message = 'the policy is being loaded by this policy server; try again';
  return { kind: 'loading', of: coming.revision, message, failurePolicy: failurePolicyOfSlot(coming), match };
}

function failurePolicyOfSlot({ declared, wanted }: Slot): FailurePolicy {
  return declared?.definition.failurePolicy ?? failurePolicyOf(wanted?.snapshot);
}

export function tableEntry(id: string, published: PublishedPolicy): TableEntry {
  const { match: own, alsoIn } = published;
  const match = { ...(own === undefined ? {} : { match: own }), ...(alsoIn === undefined ? {} : { alsoIn }) };
  if (published.kind === 'serving') {
    return { id, definition: published.loaded.definition, digests: published.loaded.digests, ...match };
  }
  const { kind, message, failurePolicy } = published;
  return { id, failed: { message, failurePolicy }, ...match, ...(kind === 'loading' ? { isLoading: true } : {}) };
}
