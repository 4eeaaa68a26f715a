// What the registry knows of one policy: the versions that are wanted, and the one that the workers have.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { FailurePolicy, PolicyDefinition } from '../../engine/index.ts';
import type { DeclaredPolicy, PolicyReason } from '../../evaluation/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { PinnedModule } from '../../control/index.ts';
import type { PolicyPhase } from '../status/policy-status.ts';
import type { PinnedPolicy, RevisionName } from './serving-record.ts';
import type { WantedPolicy, WantedRevision } from './wanted-policy.ts';

/** A version that is loaded. */
export interface LoadedRevision extends PinnedPolicy {
  /** Hash of definition and modules: equal wherever both are. */
  readonly version: string;
  /** Empty until it serves. */
  since: string;
  /** `status.order` of the PolicyRevision when it was last the one to serve; 0 when it never was. */
  order: number;
}

/** One version of a policy on its way: being loaded, loaded, or failed. */
export interface Slot {
  /** Names the version and its modules, see {@link slotKey}. */
  readonly key: string;
  /** Absent for a file. */
  readonly revision?: RevisionName;
  /** Absent for what served before a restart, which is known already. */
  readonly wanted?: WantedRevision;
  readonly match: PolicyMatch | undefined;
  /** Undefined until it has been read. */
  declared: DeclaredPolicy | undefined;
  /** Digest of each module by reference; undefined: the modules that the sources have now. */
  pins: Readonly<Record<string, string>> | undefined;
  /** Since when it serves, where it served before a restart. */
  readonly since: string;
  /** Whether no source is asked for modules. */
  readonly isFromCache: boolean;
  isLoading: boolean;
  loaded: LoadedRevision | undefined;
  failure: { readonly reason: PolicyReason; readonly message: string } | undefined;
  /** Digests of modules that were fetched before the version failed. */
  fetched: Readonly<Record<string, string>>;
  /** Why its modules come from the cache although their source was asked. */
  sourceError: string | undefined;
  attempts: number;
  /** Undefined also while it is being tried. */
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
      /** `loading`: the version to serve is not loaded yet; requests for a whole bucket do not wait for it. */
      readonly kind: 'failed' | 'loading';
      readonly message: string;
      readonly failurePolicy: FailurePolicy;
    }
);

/** A worker could not take up what was published. */
export interface ActivationFailure {
  /** What that was. */
  readonly of: Shown;
  readonly message: string;
  readonly attempts: number;
  readonly nextRetry: Date;
  readonly retry: NodeJS.Timeout;
}

/** Where a policy is now. */
export interface PhaseChange {
  readonly phase: PolicyPhase;
  readonly reason: PolicyReason;
  readonly message: string;
  readonly nextRetry: Date | undefined;
}

/** One policy of the registry. */
export interface RegistryEntry {
  readonly id: string;
  /** Undefined while the source has not been read: only what served before a restart is known. */
  wanted: WantedPolicy | undefined;
  /** The wanted versions, by key. */
  slots: ReadonlyMap<string, Slot>;
  /** What served before a restart, until a wanted version serves. */
  standIn: Slot | undefined;
  /** Why the policies file cannot be used; undefined when it can, and of a cluster. */
  unusable: string | undefined;
  shown: Shown | undefined;
  /** The buckets in which API servers may ask about the policy now. */
  buckets: readonly string[];
  /** The buckets in which they did a short time ago, see LINGER_MS. */
  lingering: readonly string[];
  /** Ends {@link lingering}. */
  lingers: NodeJS.Timeout | undefined;
  /** Whether every worker has what is shown. */
  isEverywhere: boolean;
  /** The version that some workers may still answer by. */
  before: LoadedRevision | undefined;
  /** Set when a worker could not take up what is shown, until all have. */
  activationFailure: ActivationFailure | undefined;
  /** When the version to serve became it, by `performance.now()`; undefined when it serves. */
  waitingSince: number | undefined;
  /** As last reported. */
  facts: PhaseChange | undefined;
  since: Date;
}

export function newEntry(id: string): RegistryEntry {
  return {
    id,
    wanted: undefined,
    slots: new Map(),
    standIn: undefined,
    unusable: undefined,
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
  };
}

/** The key of a version: with other modules than before, because it was validated anew, it is loaded anew. */
function slotKey(uid: string, digests: readonly string[]): string {
  const modules = digests.filter((digest) => digest.startsWith('sha256:')).toSorted();
  return [uid, ...new Set(modules)].join(' ');
}

/** The key of the slot of a wanted version. */
export function wantedKey({ uid, modules = [] }: WantedRevision): string {
  return slotKey(
    uid,
    modules.map(({ digest }) => digest),
  );
}

/** The key of a version that was loaded. */
export function pinnedKey({ revision, hash, digests }: PinnedPolicy): string {
  return slotKey(revision?.uid ?? hash, Object.values(digests));
}

export function newSlot(wanted: WantedRevision): Slot {
  const { name, uid, revision: number, match } = wanted;
  return { ...emptySlot(wantedKey(wanted), number === undefined ? undefined : { name, uid, number }, match), wanted };
}

/** A slot for what served before a restart. */
export function recordedSlot(pinned: PinnedPolicy): Slot {
  const { definition, hash, settingsHash, digests, since, match, revision } = pinned;
  return {
    ...emptySlot(pinnedKey(pinned), revision, match),
    declared: { definition, hash, settingsHash },
    pins: digests,
    since,
    isFromCache: revision === undefined,
  };
}

/** A slot for a version that is loaded already and is wanted again. */
export function loadedSlot(wanted: WantedRevision, loaded: LoadedRevision): Slot {
  return { ...newSlot(wanted), declared: loaded, pins: loaded.digests, loaded };
}

function emptySlot(key: string, revision: RevisionName | undefined, match: PolicyMatch | undefined): Slot {
  return {
    key,
    ...(revision === undefined ? {} : { revision }),
    match,
    declared: undefined,
    pins: undefined,
    since: '',
    isFromCache: false,
    isLoading: false,
    loaded: undefined,
    failure: undefined,
    fetched: {},
    sourceError: undefined,
    attempts: 0,
    nextRetry: undefined,
    retry: undefined,
  };
}

/**
 * What was loaded of a slot.
 * @param known versions that are loaded already: the same one goes on
 */
export function loadedRevision(
  { revision, since, match }: Slot,
  declared: DeclaredPolicy,
  digests: Readonly<Record<string, string>>,
  known: readonly (LoadedRevision | undefined)[],
): LoadedRevision {
  const isSame = (one: LoadedRevision | undefined): boolean =>
    one?.hash === declared.hash && one.revision?.uid === revision?.uid && isDeepStrictEqual(one.digests, digests);
  return (
    known.find(isSame) ?? {
      ...pinned(declared, { digests, since, revision, match }),
      since,
      order: 0,
      version: versionName(declared, digests),
    }
  );
}

/** Short name of a version. */
export function versionName({ hash }: DeclaredPolicy, digests: Readonly<Record<string, string>>): string {
  const sha256 = createHash('sha256').update([hash, ...Object.values(digests)].join());
  return sha256.digest('hex').slice(0, 12);
}

/** What is to be kept for the next start of a slot; undefined when it has not been read. */
export function pinnedSlot({ declared, pins = {}, since, revision, match }: Slot): PinnedPolicy | undefined {
  return declared && pinned(declared, { digests: pins, since, revision, match });
}

/** What is to be kept for the next start, without what is known of a loaded version besides. */
export function pinned(
  { definition, hash, settingsHash }: DeclaredPolicy,
  rest: Pick<PinnedPolicy, 'digests' | 'since'> & {
    readonly revision: RevisionName | undefined;
    readonly match: PolicyMatch | undefined;
  },
): PinnedPolicy {
  const { digests, since, revision, match } = rest;
  return {
    definition,
    hash,
    settingsHash,
    digests,
    since,
    ...(revision === undefined ? {} : { revision }),
    ...(match === undefined ? {} : { match }),
  };
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
          pin: modules.find((pinnedModule) => pinnedModule.name === name),
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

/** The slot of the version that is to serve. */
export function targetOf({ wanted, slots }: RegistryEntry): Slot | undefined {
  const serving = wanted?.serving;
  return serving === undefined ? undefined : slots.get(wantedKey(serving));
}

/** The slot of the version that is or will be the newest to serve. */
export function desiredOf({ wanted, slots }: RegistryEntry): Slot | undefined {
  const newest = [wanted?.serving, ...(wanted?.staged ?? [])]
    .filter((one) => one !== undefined)
    .toSorted((a, b) => (b.revision ?? 0) - (a.revision ?? 0))[0];
  return newest === undefined ? undefined : slots.get(wantedKey(newest));
}

/** The wanted slots, and what served before a restart. */
export function slotsOf({ slots, standIn }: RegistryEntry): Slot[] {
  const wanted = [...slots.values()];
  return standIn === undefined || slots.get(standIn.key) === standIn ? wanted : [...wanted, standIn];
}

/** The version that answers. */
export function servingOf({ shown }: RegistryEntry): LoadedRevision | undefined {
  return shown?.kind === 'serving' ? shown.loaded : undefined;
}

/** Why a version failed, and its stand-in too, where it has one. */
export function failureText({ standIn }: RegistryEntry, { failure }: Slot): string {
  const { message = '' } = failure ?? {};
  return standIn?.failure === undefined || standIn.failure === failure
    ? message
    : `${message}; and what served before cannot stand in: ${standIn.failure.message}`;
}
