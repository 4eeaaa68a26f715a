// What the workers are to have of a policy, and in which buckets API servers may ask about it.
import { isDeepStrictEqual } from 'node:util';
import type { FailurePolicy } from '../../engine/index.ts';
import type { TableEntry } from '../../evaluation/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import {
  failureText,
  type LoadedRevision,
  type RegistryEntry,
  type Shown,
  type Slot,
  targetOf,
} from './registry-entry.ts';
import { failurePolicyOf } from './wanted-policy.ts';

/**
 * How long a policy answers in a bucket after API servers were last to ask about it there: one that has not seen the newest
 * configuration asks in the old bucket only, and one that has may ask a replica that serves the old revision. Long against
 * both, and against the longest wait for a write of configurations (15 s). Milliseconds.
 */
export const LINGER_MS = 60_000;

/** What workers are to have now; the same object where nothing changes. Updates the entry's buckets. */
export function nextShown(entry: RegistryEntry): Shown | undefined {
  const wanted = wantedShown(entry);
  const buckets = bucketsOf(entry, wanted);
  entry.lingering = [...new Set([...entry.lingering, ...entry.buckets])].filter((bucket) => !buckets.includes(bucket));
  entry.buckets = buckets;
  const next = withBuckets(wanted, [...buckets, ...entry.lingering].toSorted());
  return isSame(next, entry.shown) ? entry.shown : next;
}

/** Includes the buckets of the version to serve while another one answers in its place: API servers ask there. */
function bucketsOf({ wanted }: RegistryEntry, shown: Shown | undefined): readonly string[] {
  const revisions = [shown, wanted?.serving, ...(wanted?.staged ?? [])];
  return [...new Set([...revisions.flatMap((one) => one?.match?.bucket ?? []), ...(wanted?.buckets ?? [])])];
}

/** Loaded versions are compared by identity. */
function isSame(one: Shown | undefined, other: Shown | undefined): boolean {
  const loadedOf = (shown: Shown | undefined): unknown => (shown?.kind === 'serving' ? shown.loaded : undefined);
  return loadedOf(one) === loadedOf(other) && isDeepStrictEqual(one, other);
}

function withBuckets(shown: Shown | undefined, buckets: readonly string[]): Shown | undefined {
  if (shown === undefined) {
    return undefined;
  }
  const { alsoIn: _before, ...rest } = shown;
  const others = buckets.filter((bucket) => bucket !== shown.match?.bucket);
  return shown.match === undefined || others.length === 0 ? rest : { ...rest, alsoIn: others };
}

function wantedShown(entry: RegistryEntry): Shown | undefined {
  const { wanted, standIn, shown } = entry;
  const target = targetOf(entry);
  if (target?.loaded !== undefined) {
    return serving(target.loaded, wanted?.serving?.match ?? target.loaded.match);
  }
  if (wanted?.failed !== undefined) {
    const { message, failurePolicy, match } = wanted.failed;
    return { kind: 'failed', message, failurePolicy, match };
  }
  // What serves goes by its own rules, whatever those of its successor are.
  if (shown?.kind === 'serving') {
    return serving(shown.loaded, shown.loaded.match ?? wanted?.serving?.match);
  }
  if (standIn?.loaded !== undefined) {
    return serving(standIn.loaded, standIn.loaded.match ?? wanted?.serving?.match);
  }
  const mayStillCome = standIn !== undefined && standIn.failure === undefined;
  const failed = target ?? standIn;
  if (failed?.failure === undefined || mayStillCome) {
    return notYet(entry, target);
  }
  return {
    kind: 'failed',
    message: failureText(entry, failed),
    failurePolicy: failurePolicyOfSlot(failed),
    match: wanted?.serving?.match ?? failed.match,
  };
}

function serving(loaded: LoadedRevision, match: PolicyMatch | undefined): Shown {
  return { kind: 'serving', loaded, match };
}

/** What answers for a policy of which nothing has been loaded yet. */
function notYet({ shown, wanted, standIn }: RegistryEntry, target: Slot | undefined): Shown | undefined {
  const coming = target ?? standIn;
  const match = wanted?.serving?.match ?? standIn?.match;
  if (coming === undefined || match === undefined || shown?.kind === 'serving') {
    return shown;
  }
  if (shown?.kind === 'failed') {
    return { ...shown, match };
  }
  const message = 'the policy is being loaded by this policy server; try again';
  return { kind: 'loading', message, failurePolicy: failurePolicyOfSlot(coming), match };
}

function failurePolicyOfSlot({ declared, wanted }: Slot): FailurePolicy {
  return declared?.definition.failurePolicy ?? failurePolicyOf(wanted?.snapshot);
}

export function tableEntry(id: string, shown: Shown): TableEntry {
  const { match: own, alsoIn } = shown;
  const match = { ...(own === undefined ? {} : { match: own }), ...(alsoIn === undefined ? {} : { alsoIn }) };
  if (shown.kind === 'serving') {
    return { id, definition: shown.loaded.definition, digests: shown.loaded.digests, ...match };
  }
  const { kind, message, failurePolicy } = shown;
  return { id, failed: { message, failurePolicy }, ...match, ...(kind === 'loading' ? { isLoading: true } : {}) };
}
