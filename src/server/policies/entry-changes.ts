// How an entry changes when its source wants something else, or when more of it is loaded.
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
  wantedKey,
} from './registry-entry.ts';
import { nextShown } from './shown-policy.ts';
import type { WantedPolicy } from './wanted-policy.ts';

/** Sets what is wanted of a policy. Returns the slots to load. */
export function want(entry: RegistryEntry, wanted: WantedPolicy): Slot[] {
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
    slots.set(key, slot);
  }
  entry.wanted = wanted;
  entry.unusable = undefined;
  entry.slots = slots;
  forgetRetries([...known.values()].filter((slot) => slots.get(slot.key) !== slot && slot !== entry.standIn));
  const now = targetOf(entry)?.key;
  if (now !== target) {
    entry.waitingSince = now === undefined ? undefined : performance.now();
  }
  return loads;
}

/** Sets what workers are to have of a policy. Returns whether that differs from before. */
export function show(entry: RegistryEntry): boolean {
  const next = nextShown(entry);
  const isNew = next !== entry.shown;
  if (isNew) {
    const answered = servingOf(entry);
    // Until every worker has changed over, the one before still answers.
    entry.before = entry.isEverywhere ? answered : entry.before;
    entry.shown = next;
    // The same version in other buckets still serves everywhere.
    entry.isEverywhere = entry.isEverywhere && answered !== undefined && answered === servingOf(entry);
    forgetActivation(entry);
    entry.activationFailure = undefined;
    const serves = servingOf(entry);
    // A return to the version before: some workers may answer by its successor.
    entry.before = entry.before === serves ? undefined : entry.before;
    if (serves !== undefined && serves.since === '') {
      serves.since = new Date().toISOString();
    }
  }
  const serves = servingOf(entry);
  if (serves !== undefined && targetOf(entry)?.loaded === serves) {
    // Also when a version that was to be replaced stays.
    serves.order = entry.wanted?.serving?.order ?? 0;
  }
  const { standIn } = entry;
  if (standIn !== undefined && isPast(entry)) {
    entry.standIn = undefined;
    forgetRetries(entry.slots.get(standIn.key) === standIn ? [] : [standIn]);
  }
  return isNew;
}

/** Whether what served before a restart is no longer needed: the wanted version serves, or none is to serve. */
function isPast(entry: RegistryEntry): boolean {
  const serves = servingOf(entry);
  const isReplaced = serves !== undefined && targetOf(entry)?.loaded === serves;
  return isReplaced || entry.wanted?.failed !== undefined;
}

/** The definitions that are loaded of a policy and do not serve. */
export function stagedBeside(entry: RegistryEntry): PolicyDefinition[] {
  const serves = servingOf(entry);
  return slotsOf(entry).flatMap(({ loaded }) => (loaded === undefined || loaded === serves ? [] : [loaded.definition]));
}

/** Cancels the next try to activate. */
export function forgetActivation({ activationFailure }: RegistryEntry): void {
  clearTimeout(activationFailure?.retry);
}

/** Cancels the timer that ends {@link RegistryEntry.lingering}. */
export function forgetLingering({ lingers }: RegistryEntry): void {
  clearTimeout(lingers);
}

/** Cancels the next tries to load. */
export function forgetRetries(slots: readonly Slot[]): void {
  for (const { retry } of slots) {
    clearTimeout(retry);
  }
}
