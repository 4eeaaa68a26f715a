// Updates registry entries when their source changes or a load ends.
import type { PolicyDefinition } from '../../engine/index.ts';
import {
  loadedSlot,
  newSlot,
  pinnedKey,
  type RegistryEntry,
  servingOf,
  type Slot,
  slotsOf,
  targetOf,
  verifiedOf,
  wantedKey,
} from './registry-entry.ts';
import { nextPublished } from './published-policy.ts';
import type { WantedPolicy } from './wanted-policy.ts';

/** Sets the wanted versions of a policy. Returns the slots to load. */
export function setWanted(entry: RegistryEntry, wanted: WantedPolicy): Slot[] {
  const known = entry.slots;
  const target = targetOf(entry)?.key;
  const serves = servingOf(entry);
  const servingKey = serves && pinnedKey(serves);
  const slots = new Map<string, Slot>();
  const loads: Slot[] = [];
  for (const revision of [...(wanted.serving === undefined ? [] : [wanted.serving]), ...wanted.staged]) {
    const key = wantedKey(revision);
    let slot = known.get(key) ?? (entry.standIn?.key === key ? entry.standIn : undefined);
    if (slot === undefined && serves !== undefined && key === servingKey) {
      slot = loadedSlot(revision, serves);
    }
    if (slot === undefined) {
      slot = newSlot(revision);
      loads.push(slot);
    }
    if (slot.declared !== undefined && revision.modules !== undefined) {
      slot.verified = verifiedOf(slot.declared.definition, revision.modules);
    }
    slots.set(key, slot);
  }
  entry.wanted = wanted;
  entry.fileError = undefined;
  entry.slots = slots;
  cancelRetries([...known.values()].filter((slot) => slots.get(slot.key) !== slot && slot !== entry.standIn));
  const now = targetOf(entry)?.key;
  if (now !== target) {
    entry.waitingSince = now === undefined ? undefined : performance.now();
  }
  return loads;
}

/** Updates the version to publish to workers. Returns whether it changed. */
export function updatePublished(entry: RegistryEntry): boolean {
  const next = nextPublished(entry);
  const isNew = next !== entry.published;
  if (isNew) {
    const previous = servingOf(entry);
    // Until every worker has changed, some still serve the previous version.
    entry.previous = entry.isOnAllWorkers ? previous : entry.previous;
    entry.published = next;
    // The same version in other buckets still serves on all workers.
    entry.isOnAllWorkers = entry.isOnAllWorkers && previous !== undefined && previous === servingOf(entry);
    cancelActivationRetry(entry);
    entry.activationFailure = undefined;
    const serves = servingOf(entry);
    // Back to the previous version: some workers may still serve its successor.
    entry.previous = entry.previous === serves ? undefined : entry.previous;
    if (serves !== undefined && serves.since === '') {
      serves.since = new Date().toISOString();
    }
  }
  const serves = servingOf(entry);
  if (serves !== undefined && targetOf(entry)?.loaded === serves) {
    // Also when the change was cancelled and the version stays.
    serves.order = entry.wanted?.serving?.order ?? 0;
  }
  const { standIn } = entry;
  if (standIn !== undefined && isStandInObsolete(entry)) {
    entry.standIn = undefined;
    cancelRetries(entry.slots.get(standIn.key) === standIn ? [] : [standIn]);
  }
  return isNew;
}

/** Whether the stand-in is no longer needed: the wanted version serves, or none is wanted. */
function isStandInObsolete(entry: RegistryEntry): boolean {
  const serves = servingOf(entry);
  const isReplaced = serves !== undefined && targetOf(entry)?.loaded === serves;
  return isReplaced || entry.wanted?.failed !== undefined;
}

/** Loaded definitions of a policy that do not serve. */
export function stagedDefinitions(entry: RegistryEntry): PolicyDefinition[] {
  const serves = servingOf(entry);
  return slotsOf(entry).flatMap(({ loaded }) => (loaded === undefined || loaded === serves ? [] : [loaded.definition]));
}

/** Cancels the retry of an activation. */
export function cancelActivationRetry({ activationFailure }: RegistryEntry): void {
  clearTimeout(activationFailure?.retry);
}

/** Cancels the timer of {@link RegistryEntry.lingering}. */
export function cancelLingering({ lingerTimer }: RegistryEntry): void {
  clearTimeout(lingerTimer);
}

/** Cancels retries of loads. */
export function cancelRetries(slots: readonly Slot[]): void {
  for (const { retry } of slots) {
    clearTimeout(retry);
  }
}
