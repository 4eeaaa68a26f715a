// What a replica has of one policy: the revisions that it is to have, the one that answers, and what there is to say.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { PolicyDefinition } from '../../engine/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { TableEntry } from '../../evaluation/index.ts';
import type { PinnedPolicy, ServedRevisionName } from '../policies/policy-registry.ts';
import type { DeclaredPolicy } from '../../evaluation/index.ts';
import type { PolicyPhase, PolicyStatus, PolicyVersion } from '../status/policy-status.ts';
import type { PolicyReason } from '../../evaluation/index.ts';
import type { PinnedModule, RevisionReport } from '../../control/index.ts';
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
  /** Which requests it is for, as far as that is known. */
  readonly match: PolicyMatch | undefined;
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
export type Shown = {
  readonly match: PolicyMatch | undefined;
  /** See TableEntry. */
  readonly alsoIn?: readonly string[];
} & (
  | { readonly kind: 'serving'; readonly loaded: LoadedRevision }
  | {
      /** `loading`: something is to serve that is not here yet. Requests for all policies of a bucket do not wait for it. */
      readonly kind: 'failed' | 'loading';
      readonly message: string;
      readonly failurePolicy: 'Fail' | 'Ignore';
    }
);

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
  /** In which buckets API servers may ask about what is shown, by all that is known now. */
  buckets: readonly string[];
  /** Those in which they did not long ago: see {@link LINGER_MS}. */
  lingering: readonly string[];
  /** Ends that. */
  lingers: NodeJS.Timeout | undefined;
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
    buckets: [],
    lingering: [],
    lingers: undefined,
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
  const { name, uid, revision, match } = wanted;
  return {
    key: wantedKey(wanted),
    revision: { name, uid, number: revision },
    wanted,
    match,
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
  const { definition, hash, settingsHash, digests, since, match } = pinned;
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
    match,
    declared: { definition, hash, settingsHash },
    pins: digests,
    since,
  };
}

/** The other way round: none of what has not been read yet. */
export function pinnedOf({ declared, pins, since, revision, match }: Slot): PinnedPolicy[] {
  return declared === undefined ? [] : [{ ...declared, digests: pins, since, revision, ...matchField(match) }];
}

function matchField(match: PolicyMatch | undefined): { readonly match?: PolicyMatch } {
  return match === undefined ? {} : { match };
}

/** A revision that is loaded already, and is wanted again. */
export function loadedSlot(wanted: WantedRevision, loaded: LoadedRevision): Slot {
  return { ...newSlot(wanted), declared: loaded, pins: loaded.digests, loaded };
}

/** What was loaded of a slot. */
export function loadedRevision(
  { revision, since, match }: Slot,
  declared: DeclaredPolicy,
  digests: Readonly<Record<string, string>>,
): LoadedRevision {
  const version = createHash('sha256').update([declared.hash, ...Object.values(digests)].join());
  const of = { digests, since, order: 0, revision, version: version.digest('hex').slice(0, 12), ...matchField(match) };
  return { ...declared, ...of };
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

/**
 * How long a policy answers in a bucket after API servers were last to ask about it there: one that has not seen the newest
 * configuration asks in the old bucket only, and one that has may ask a replica that serves the old revision. Long against
 * both, and against the longest wait for a write of configurations (15 s). Milliseconds.
 */
export const LINGER_MS = 60_000;

/** What workers are to have now, by all that is known; the same object where nothing changes. Notes in which buckets. */
export function nextShown(entry: RevisionEntry): Shown | undefined {
  const wanted = wantedShown(entry);
  const buckets = bucketsOf(entry, wanted);
  entry.lingering = [...new Set([...entry.lingering, ...entry.buckets])].filter((bucket) => !buckets.includes(bucket));
  entry.buckets = buckets;
  const next = withBuckets(wanted, [...buckets, ...entry.lingering].toSorted());
  return isSame(next, entry.shown) ? entry.shown : next;
}

/** Also where what is to serve belongs, while something else answers in its place: it is asked about there. */
function bucketsOf({ wanted }: RevisionEntry, shown: Shown | undefined): readonly string[] {
  const revisions = [shown, wanted?.serving, ...(wanted?.staged ?? [])];
  return [...new Set([...revisions.flatMap((one) => one?.match?.bucket ?? []), ...(wanted?.buckets ?? [])])];
}

/** Of what serves it counts which thing that is, not how it looks. */
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

function wantedShown(entry: RevisionEntry): Shown | undefined {
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
  const failure = target === undefined ? standIn?.failure : target.failure;
  if (failure === undefined || mayStillCome) {
    return notYet(entry, target);
  }
  const failed = target ?? standIn;
  return {
    kind: 'failed',
    message: failure.message,
    failurePolicy: failurePolicyOfSlot(failed),
    match: wanted?.serving?.match ?? failed?.match,
  };
}

function serving(loaded: LoadedRevision, match: PolicyMatch | undefined): Shown {
  return { kind: 'serving', loaded, match };
}

/** What answers for a policy of which nothing has been loaded here; what served before a restart counts as what is to serve. */
function notYet({ shown, wanted, standIn }: RevisionEntry, target: Slot | undefined): Shown | undefined {
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

function failurePolicyOfSlot(slot: Slot | undefined): 'Fail' | 'Ignore' {
  return slot?.declared?.definition.failurePolicy ?? failurePolicyOf(slot?.wanted?.snapshot);
}

export function tableEntry(id: string, shown: Shown): TableEntry {
  const { alsoIn } = shown;
  const match = { ...matchField(shown.match), ...(alsoIn === undefined ? {} : { alsoIn }) };
  if (shown.kind === 'serving') {
    return { id, definition: shown.loaded.definition, digests: shown.loaded.digests, ...match };
  }
  const { kind, message, failurePolicy } = shown;
  return { id, failed: { message, failurePolicy }, ...match, ...(kind === 'loading' ? { isLoading: true } : {}) };
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
