// What a replica has of one policy: the revisions that it is to have, the one that answers, and what there is to say.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { PolicyDefinition } from '../../engine/index.ts';
import type { TableEntry } from '../evaluation-protocol.ts';
import type { DeclaredPolicy, PinnedPolicy, ServedRevisionName } from '../policy-registry.ts';
import type { PolicyPhase, PolicyReason, PolicyStatus, PolicyVersion } from '../policy-status.ts';
import type { PinnedModule, RevisionReport } from './replica-protocol.ts';
import { failurePolicyOf, type WantedPolicy, type WantedRevision } from './revision-wanted.ts';

/** What is loaded of a revision. */
export interface LoadedRevision extends PinnedPolicy {
  readonly revision: ServedRevisionName;
  /** Names definition and modules: the same wherever they are the same. */
  readonly version: string;
  /** Empty until it serves. */
  since: string;
  /** `status.order` of the PolicyRevision when it was last the one to serve; 0 when it never was. */
  order: number;
}

/** A revision that is loaded, is being loaded, or could not be. */
export interface Slot {
  /** Which revision with which modules; see {@link slotKey}. */
  readonly key: string;
  readonly revision: ServedRevisionName;
  /** The spec to read, and the modules to have; undefined for what served before a restart, which is known already. */
  readonly wanted: WantedRevision | undefined;
  declared: DeclaredPolicy | undefined;
  /** Digest of each module by the reference that the definition has. */
  pins: Readonly<Record<string, string>>;
  /** Since when it serves, where it served before a restart. */
  readonly since: string;
  isLoading: boolean;
  loaded: LoadedRevision | undefined;
  failure: { readonly reason: PolicyReason; readonly message: string } | undefined;
  attempts: number;
  nextRetry: Date | undefined;
  retry: NodeJS.Timeout | undefined;
}

/** What the workers have under a policy's id. */
export type Shown =
  | { readonly kind: 'serving'; readonly loaded: LoadedRevision }
  | { readonly kind: 'failed'; readonly message: string; readonly failurePolicy: 'Fail' | 'Ignore' };

/** A worker could not take up what was shown to it. */
export interface ActivationFailure {
  /** What that was. */
  readonly of: Shown;
  readonly message: string;
  readonly attempts: number;
  readonly nextRetry: Date;
  readonly retry: NodeJS.Timeout;
}

/** Where a policy is now. */
export interface PhaseFacts {
  readonly phase: PolicyPhase;
  readonly reason: PolicyReason;
  readonly message: string;
  readonly nextRetry: Date | undefined;
}

export interface RevisionEntry {
  readonly id: string;
  /** Undefined while the cluster has not said anything: what served before a restart is all that is known. */
  wanted: WantedPolicy | undefined;
  /** The wanted revisions, by key. */
  slots: ReadonlyMap<string, Slot>;
  /** What served before a restart, until something newer serves. */
  standIn: Slot | undefined;
  shown: Shown | undefined;
  /** Whether every worker has what is shown. */
  isEverywhere: boolean;
  /** What some workers may still answer by. */
  before: LoadedRevision | undefined;
  /** Set when a worker could not take up what is shown, until all have. */
  activationFailure: ActivationFailure | undefined;
  /** When the revision that is to serve became it; `performance.now()`. Undefined when it serves. */
  waitingSince: number | undefined;
  facts: PhaseFacts | undefined;
  since: Date;
  /** What was told of revisions, by name. */
  reports: ReadonlyMap<string, RevisionReport>;
}

export function newEntry(id: string): RevisionEntry {
  return {
    id,
    wanted: undefined,
    slots: new Map(),
    standIn: undefined,
    shown: undefined,
    isEverywhere: false,
    before: undefined,
    activationFailure: undefined,
    waitingSince: undefined,
    facts: undefined,
    since: new Date(),
    reports: new Map(),
  };
}

/** A revision with other modules than before, because it was validated anew, is another thing to load. */
export function slotKey(uid: string, digests: readonly string[]): string {
  const modules = digests.filter((digest) => digest.startsWith('sha256:')).toSorted();
  return [uid, ...new Set(modules)].join(' ');
}

export function newSlot(wanted: WantedRevision): Slot {
  const { name, uid, revision } = wanted;
  return {
    key: wantedKey(wanted),
    revision: { name, uid, number: revision },
    wanted,
    declared: undefined,
    pins: {},
    since: '',
    isLoading: false,
    loaded: undefined,
    failure: undefined,
    attempts: 0,
    nextRetry: undefined,
    retry: undefined,
  };
}

/** What served before a restart. */
export function recordedSlot(pinned: PinnedPolicy, revision: ServedRevisionName): Slot {
  const { definition, hash, settingsHash, digests, since } = pinned;
  return {
    ...newSlot({
      name: revision.name,
      uid: revision.uid,
      revision: revision.number,
      snapshot: undefined,
      order: 0,
      modules: [],
    }),
    key: slotKey(revision.uid, Object.values(digests)),
    wanted: undefined,
    declared: { definition, hash, settingsHash },
    pins: digests,
    since,
  };
}

/** The other way round: none of what has not been read yet. */
export function pinnedOf({ declared, pins, since, revision }: Slot): PinnedPolicy[] {
  return declared === undefined ? [] : [{ ...declared, digests: pins, since, revision }];
}

/** A revision that is loaded already, and is wanted again. */
export function loadedSlot(wanted: WantedRevision, loaded: LoadedRevision): Slot {
  return { ...newSlot(wanted), declared: loaded, pins: loaded.digests, loaded };
}

/** What was loaded of a slot. */
export function loadedRevision(
  { revision, since }: Slot,
  declared: DeclaredPolicy,
  digests: Readonly<Record<string, string>>,
): LoadedRevision {
  const version = createHash('sha256').update([declared.hash, ...Object.values(digests)].join());
  return { ...declared, digests, since, order: 0, revision, version: version.digest('hex').slice(0, 12) };
}

/** The digest of each module of a definition that is not builtin; a text when the revision does not say one. */
export function pinsOf(
  definition: PolicyDefinition,
  modules: readonly PinnedModule[],
): Record<string, string> | string {
  const uses =
    definition.kind === 'policy'
      ? [{ reference: definition.module, pin: modules[0] }]
      : definition.members.map(({ name, module }) => ({
          reference: module,
          pin: modules.find((pinned) => pinned.name === name),
        }));
  const pins: [reference: string, digest: string][] = [];
  for (const { reference, pin } of uses) {
    if (reference.trim().startsWith('builtin:')) {
      continue;
    }
    if (pin?.digest.startsWith('sha256:') !== true) {
      return 'the revision does not say which module it was validated with: expected a digest in status.modules';
    }
    pins.push([reference, pin.digest]);
  }
  return Object.fromEntries(pins);
}

/** The slot of the revision that is to serve. */
export function targetOf({ wanted, slots }: RevisionEntry): Slot | undefined {
  const serving = wanted?.serving;
  return serving === undefined ? undefined : slots.get(wantedKey(serving));
}

/** The slot of the revision that is or will be the newest to serve. */
function desiredOf(entry: RevisionEntry): Slot | undefined {
  const newest = [entry.wanted?.serving, ...(entry.wanted?.staged ?? [])]
    .filter((wanted) => wanted !== undefined)
    .toSorted((a, b) => b.revision - a.revision)[0];
  return newest === undefined ? undefined : entry.slots.get(wantedKey(newest));
}

/** The key of the slot of a revision. */
export function wantedKey({ uid, modules }: WantedRevision): string {
  return slotKey(
    uid,
    modules.map(({ digest }) => digest),
  );
}

/** The wanted slots, and what served before a restart. */
export function slotsOf({ slots, standIn }: RevisionEntry): Slot[] {
  const wanted = [...slots.values()];
  return standIn === undefined || slots.get(standIn.key) === standIn ? wanted : [...wanted, standIn];
}

/** The revision that answers. */
export function servingOf({ shown }: RevisionEntry): LoadedRevision | undefined {
  return shown?.kind === 'serving' ? shown.loaded : undefined;
}

/** What workers are to have now, by all that is known; the same object where nothing changes. */
export function nextShown(entry: RevisionEntry): Shown | undefined {
  const { wanted, standIn, shown } = entry;
  const target = targetOf(entry);
  if (target?.loaded !== undefined) {
    return serving(shown, target.loaded);
  }
  if (wanted?.failed !== undefined) {
    return failed(shown, wanted.failed.message, wanted.failed.failurePolicy);
  }
  if (shown?.kind === 'serving') {
    return shown;
  }
  if (standIn?.loaded !== undefined) {
    return serving(shown, standIn.loaded);
  }
  const mayStillCome = standIn !== undefined && standIn.failure === undefined;
  const failure = target === undefined ? standIn?.failure : target.failure;
  if (failure === undefined || mayStillCome) {
    return shown;
  }
  return failed(shown, failure.message, failurePolicyOfSlot(target ?? standIn));
}

function serving(shown: Shown | undefined, loaded: LoadedRevision): Shown {
  return shown?.kind === 'serving' && shown.loaded === loaded ? shown : { kind: 'serving', loaded };
}

function failed(shown: Shown | undefined, message: string, failurePolicy: 'Fail' | 'Ignore'): Shown {
  const next: Shown = { kind: 'failed', message, failurePolicy };
  return isDeepStrictEqual(shown, next) ? (shown ?? next) : next;
}

function failurePolicyOfSlot(slot: Slot | undefined): 'Fail' | 'Ignore' {
  return slot?.declared?.definition.failurePolicy ?? failurePolicyOf(slot?.wanted?.snapshot);
}

export function tableEntry(id: string, shown: Shown): TableEntry {
  return shown.kind === 'serving'
    ? { id, definition: shown.loaded.definition, digests: shown.loaded.digests }
    : { id, failed: { message: shown.message, failurePolicy: shown.failurePolicy } };
}

/** Whether all that is wanted has served, been staged, or failed once. */
export function isSettled(entry: RevisionEntry): boolean {
  return slotsOf(entry).every(({ isLoading }) => !isLoading) && (entry.shown === undefined || entry.isEverywhere);
}

/** What there is to say of the revisions of a policy, by name. */
export function reportsOf(entry: RevisionEntry): Map<string, RevisionReport> {
  const serves = entry.isEverywhere ? servingOf(entry) : entry.before;
  const reports = new Map<string, RevisionReport>();
  const report = ({ name, uid, number }: ServedRevisionName, rest: ReportedState): void => {
    reports.set(name, { name, uid, policy: entry.id, revision: number, ...rest });
  };
  if (serves !== undefined) {
    report(serves.revision, servingState(serves));
  }
  for (const slot of entry.slots.values()) {
    if (slot.loaded === undefined || slot.loaded !== entry.before) {
      report(slot.revision, stateOf(slot, entry));
    }
  }
  return reports;
}

type ReportedState = Omit<RevisionReport, 'name' | 'uid' | 'policy' | 'revision'>;

function servingState({ order }: LoadedRevision): ReportedState {
  return { state: 'Serving', ...(order > 0 ? { order } : {}) };
}

function stateOf({ loaded, failure, nextRetry }: Slot, entry: RevisionEntry): ReportedState {
  const isShown = loaded !== undefined && servingOf(entry) === loaded;
  if (isShown && entry.activationFailure !== undefined) {
    const { message, nextRetry: next } = entry.activationFailure;
    return { state: 'Failed', reason: 'ActivationFailed', message, nextRetry: next.toISOString() };
  }
  if (loaded !== undefined) {
    return isShown && entry.isEverywhere ? servingState(loaded) : { state: 'Staged' };
  }
  if (failure === undefined) {
    return { state: 'Loading' };
  }
  return {
    state: 'Failed',
    ...failure,
    ...(nextRetry === undefined ? {} : { nextRetry: nextRetry.toISOString() }),
  };
}

/** The phase of a policy here, and why. */
export function phaseOf(entry: RevisionEntry): PhaseFacts {
  const { wanted, standIn, activationFailure } = entry;
  const serves = servingOf(entry);
  const facts = (phase: PolicyPhase, reason: PolicyReason, message: string, nextRetry?: Date): PhaseFacts => ({
    phase,
    reason,
    message,
    nextRetry,
  });
  if (activationFailure !== undefined) {
    return facts('Error', 'ActivationFailed', activationFailure.message, activationFailure.nextRetry);
  }
  const desired = desiredOf(entry);
  if (desired === undefined) {
    if (wanted?.failed !== undefined) {
      return facts('Error', 'RevisionFailed', wanted.failed.message);
    }
    if (serves !== undefined) {
      return facts(
        'Updating',
        'ServingFromRecord',
        'what served before serves until the cluster says what is to serve',
      );
    }
    return standIn?.failure === undefined
      ? facts('Pending', 'Loading', 'no revision is to serve yet')
      : facts('Error', standIn.failure.reason, standIn.failure.message, standIn.nextRetry);
  }
  if (desired.failure !== undefined) {
    const { reason, message } = desired.failure;
    return facts(serves === undefined ? 'Error' : 'Degraded', reason, message, desired.nextRetry);
  }
  if (desired.loaded !== undefined && serves === desired.loaded && entry.isEverywhere) {
    return facts('Active', 'Serving', 'the declared version serves');
  }
  return serves === undefined
    ? facts('Pending', 'Loading', 'the first version is being loaded')
    : facts('Updating', 'Loading', 'a newer version is being loaded, or waits for its turn to serve');
}

/** What is told of a policy. */
export function statusOf(entry: RevisionEntry): PolicyStatus {
  const serves = servingOf(entry);
  const desired = desiredOf(entry);
  const shown = (desired?.declared ?? serves)?.definition;
  const { phase, reason, message, nextRetry } = entry.facts ?? phaseOf(entry);
  return {
    id: entry.id,
    kind: shown?.kind ?? 'unknown',
    mode: shown?.mode ?? 'unknown',
    phase,
    reason,
    message,
    since: entry.since.toISOString(),
    desired: desired === undefined ? null : versionOf(desired),
    serving: serves === undefined ? null : { ...versionOfLoaded(serves), since: serves.since },
    attempts: desired?.attempts ?? 0,
    nextRetry: nextRetry?.toISOString() ?? null,
  };
}

function versionOf({ declared, loaded, revision }: Slot): PolicyVersion {
  return loaded === undefined
    ? { version: null, revision: revision.number, settingsHash: declared?.settingsHash ?? '', modules: {} }
    : versionOfLoaded(loaded);
}

function versionOfLoaded({ version, revision, settingsHash, digests }: LoadedRevision): PolicyVersion {
  return { version, revision: revision.number, settingsHash, modules: digests };
}
