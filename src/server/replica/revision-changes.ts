// What becomes of a policy of a replica when something else is wanted of it, or more of it is loaded.
import type { PolicyDefinition } from '../../engine/index.ts';
import {
  loadedSlot,
  newSlot,
  nextShown,
  type RevisionEntry,
  servingOf,
  type Slot,
  slotKey,
  slotsOf,
  targetOf,
  wantedKey,
} from './revision-entry.ts';
import type { WantedPolicy } from './revision-wanted.ts';

/** Notes what is wanted of a policy. What is to be loaded for it. */
export function want(entry: RevisionEntry, wanted: WantedPolicy): Slot[] {
  const known = entry.slots;
  const target = targetOf(entry)?.key;
  const serves = servingOf(entry);
  const servingKey = serves && slotKey(serves.revision.uid, Object.values(serves.digests));
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
  entry.slots = slots;
  forgetRetries([...known.values()].filter((slot) => slots.get(slot.key) !== slot && slot !== entry.standIn));
  const now = targetOf(entry)?.key;
  if (now !== target) {
    entry.waitingSince = now === undefined ? undefined : performance.now();
  }
  return loads;
}

/** Takes over what workers are to have of a policy. Whether that is something else than before. */
export function show(entry: RevisionEntry): boolean {
  const next = nextShown(entry);
  const isNew = next !== entry.shown;
  if (isNew) {
    const answered = servingOf(entry);
    // Until every worker has changed over, the one before still answers.
    entry.before = entry.isEverywhere ? answered : entry.before;
    entry.shown = next;
    // Where else it answers is no other answer: what served everywhere does.
    entry.isEverywhere = entry.isEverywhere && answered !== undefined && answered === servingOf(entry);
    forgetActivation(entry);
    entry.activationFailure = undefined;
    const serves = servingOf(entry);
    // Back to it while its successor was on its way: some workers may answer by that one.
    entry.before = entry.before === serves ? undefined : entry.before;
    if (serves !== undefined && serves.since === '') {
      serves.since = new Date().toISOString();
    }
  }
  const serves = servingOf(entry);
  if (serves !== undefined && targetOf(entry)?.loaded === serves) {
    // Also of one that was to be replaced, and is not.
    serves.order = entry.wanted?.serving?.order ?? 0;
  }
  const { standIn } = entry;
  if (standIn !== undefined && isPast(entry)) {
    entry.standIn = undefined;
    forgetRetries(entry.slots.get(standIn.key) === standIn ? [] : [standIn]);
  }
  return isNew;
}

/** Whether what served before a restart has nothing more to do: something newer serves, or nothing is to. */
function isPast(entry: RevisionEntry): boolean {
  const serves = servingOf(entry);
  const isReplaced = serves !== undefined && targetOf(entry)?.loaded === serves;
  return isReplaced || entry.wanted?.failed !== undefined;
}

/** What is loaded of a policy and does not serve. */
export function stagedBeside(entry: RevisionEntry): PolicyDefinition[] {
  const serves = servingOf(entry);
  return slotsOf(entry).flatMap(({ loaded }) => (loaded === undefined || loaded === serves ? [] : [loaded.definition]));
}

/** Calls off what would be tried again. */
export function forgetActivation({ activationFailure }: RevisionEntry): void {
  clearTimeout(activationFailure?.retry);
}

/** Calls off the end of its answers in buckets where it was asked about before. */
export function forgetLingering({ lingers }: RevisionEntry): void {
  clearTimeout(lingers);
}

/** Calls off what would be tried again. */
export function forgetRetries(slots: readonly Slot[]): void {
  for (const { retry } of slots) {
    clearTimeout(retry);
  }
}
