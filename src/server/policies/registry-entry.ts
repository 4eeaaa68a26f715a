// The registry's state of one policy: the wanted versions, and the one published to workers.
import { hash as hashText } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { FailurePolicy, PolicyDefinition } from '../../engine/index.ts';
import type { DeclaredPolicy, PolicyReason } from '../../evaluation/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { PinnedModule } from '../../control/index.ts';
import type { ServedPolicyPhase } from '../status/served-policy-status.ts';
import type { PinnedPolicy, RevisionName } from './serving-record.ts';
import type { WantedPolicy, WantedRevision } from './wanted-policy.ts';

/** A loaded version. */
export interface LoadedRevision extends PinnedPolicy {
  /** Hash of definition and modules. */
  readonly version: string;
  /** Empty until it serves. */
  since: string;
  /** `status.order` of the PolicyRevision when it was last to serve; 0 if it never was. */
  order: number;
  /** Whether a module could not be written to the cache. */
  isUncached: boolean;
}

/** One version of a policy: loading, loaded or failed. */
export interface Slot {
  /** Identifies the version and its modules, see {@link slotKey}. */
  readonly key: string;
  /** Absent for a policies file. */
  readonly revision?: RevisionName;
  /** Absent for a stand-in, which is read from the record. */
  readonly wanted?: WantedRevision;
  readonly match: PolicyMatch | undefined;
  /** Undefined until it has been read. */
  declared: DeclaredPolicy | undefined;
  /** Digest of each module by reference; undefined for the current modules of the sources. */
  pins: Readonly<Record<string, string>> | undefined;
  /** Verification that the pinned module satisfied when the revision was validated, by reference. */
  verified: Readonly<Record<string, string>> | undefined;
  /** Since when it served before the restart. */
  readonly since: string;
  /** Whether modules come only from the cache. */
  readonly isFromCache: boolean;
  isLoading: boolean;
  loaded: LoadedRevision | undefined;
  failure: { readonly reason: PolicyReason; readonly message: string } | undefined;
  /** Digests of modules that were fetched before the version failed. */
  fetched: Readonly<Record<string, string>>;
  /** Why modules come from the cache although the source was called. */
  sourceError: string | undefined;
  attempts: number;
  /** Also undefined during an attempt. */
  nextRetry: Date | undefined;
  retry: NodeJS.Timeout | undefined;
}

/** What workers have for a policy. */
export type PublishedPolicy = {
  readonly match: PolicyMatch | undefined;
  /** See TableEntry. */
  readonly alsoIn?: readonly string[];
} & (
  | { readonly kind: 'serving'; readonly loaded: LoadedRevision }
  | {
      /** `loading`: the version to serve is not loaded yet; requests for a bucket do not wait for it. */
      readonly kind: 'failed' | 'loading';
      /** The revision whose failurePolicy answers; absent for a policies file. */
      readonly of?: RevisionName | undefined;
      readonly message: string;
      readonly failurePolicy: FailurePolicy;
    }
);

/** A worker could not activate what was published. */
interface ActivationFailure {
  /** What was published. */
  readonly published: PublishedPolicy;
  readonly message: string;
  readonly attempts: number;
  readonly nextRetry: Date;
  readonly retry: NodeJS.Timeout;
}

/** The phase of a policy, with its reason. */
export interface PhaseChange {
  readonly phase: ServedPolicyPhase;
  readonly reason: PolicyReason;
  readonly message: string;
  readonly nextRetry: Date | undefined;
}

/** One policy of the registry. */
export interface RegistryEntry {
  readonly id: string;
  /** Undefined before the source was read, when only the record is known. */
  wanted: WantedPolicy | undefined;
  /** The wanted versions, by key. */
  slots: ReadonlyMap<string, Slot>;
  /** What served before the restart, until a wanted version serves. */
  standIn: Slot | undefined;
  /** Why the policies file is invalid; undefined when it is valid, and in a cluster. */
  fileError: string | undefined;
  published: PublishedPolicy | undefined;
  /** The buckets for which API servers may send reviews of the policy. */
  buckets: readonly string[];
  /** Former buckets, for a short time; see LINGER_MS. */
  lingering: readonly string[];
  /** Ends {@link lingering}. */
  lingerTimer: NodeJS.Timeout | undefined;
  /** Whether every worker has what was published. */
  isOnAllWorkers: boolean;
  /** The version that some workers may still serve. */
  previous: LoadedRevision | undefined;
  /** Set when a worker could not activate what was published, until all have. */
  activationFailure: ActivationFailure | undefined;
  /** When the wanted version became wanted, by `performance.now()`; undefined when it serves. */
  waitingSince: number | undefined;
  /** As last reported. */
  reportedPhase: PhaseChange | undefined;
  since: Date;
}

export function newEntry(id: string): RegistryEntry {
  return {
    id,
    wanted: undefined,
    slots: new Map(),
    standIn: undefined,
    fileError: undefined,
    published: undefined,
    buckets: [],
    lingering: [],
    lingerTimer: undefined,
    isOnAllWorkers: false,
    previous: undefined,
    activationFailure: undefined,
    waitingSince: undefined,
    reportedPhase: undefined,
    since: new Date(),
  };
}

/** The key of a version. Other modules, after a new validation, make another key, so that it is loaded again. */
function slotKey(uid: string, digests: readonly string[]): string {
  if (digests.length === 0) {
    return uid;
  }
  const modules = digests.filter((digest) => digest.startsWith('sha256:')).toSorted();
  return [uid, ...new Set(modules)].join(' ');
}

/** The key of a wanted version's slot. */
export function wantedKey({ uid, modules = [] }: WantedRevision): string {
  return slotKey(
    uid,
    modules.map(({ digest }) => digest),
  );
}

/** The key of a loaded version. */
export function pinnedKey({ revision, hash, digests }: PinnedPolicy): string {
  return slotKey(revision?.uid ?? hash, Object.values(digests));
}

export function newSlot(wanted: WantedRevision): Slot {
  const { name, uid, revision: number, match } = wanted;
  return { ...emptySlot(wantedKey(wanted), number === undefined ? undefined : { name, uid, number }, match), wanted };
}

/** A slot for a version that served before the restart. */
export function recordedSlot(pinned: PinnedPolicy): Slot {
  const { definition, hash, settingsHash, digests, verified, since, match, revision } = pinned;
  return {
    ...emptySlot(pinnedKey(pinned), revision, match),
    declared: { definition, hash, settingsHash },
    pins: digests,
    verified,
    since,
    isFromCache: revision === undefined,
  };
}

/** A slot for a loaded version that is wanted again. */
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
    verified: undefined,
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
 * The loaded version of a slot.
 * @param known versions that are loaded already; an equal one is reused
 */
export function loadedRevision(
  { revision, since, match }: Slot,
  declared: DeclaredPolicy,
  {
    digests,
    verified,
    isUncached = false,
  }: Pick<PinnedPolicy, 'digests' | 'verified'> & { readonly isUncached?: boolean },
  known: readonly (LoadedRevision | undefined)[],
): LoadedRevision {
  const isSame = (one: LoadedRevision | undefined): boolean =>
    one?.hash === declared.hash && one.revision?.uid === revision?.uid && isDeepStrictEqual(one.digests, digests);
  const same = known.find(isSame);
  if (same !== undefined) {
    same.isUncached = isUncached;
    return same;
  }
  return {
    ...pinned(declared, { digests, verified, since, revision, match }),
    since,
    order: 0,
    isUncached,
    version: versionName(declared, digests),
  };
}

/** Short name of a version. */
export function versionName({ hash }: DeclaredPolicy, digests: Readonly<Record<string, string>>): string {
  return hashText('sha256', [hash, ...Object.values(digests)].join()).slice(0, 12);
}

/** The slot's version for the record; undefined before it was read. */
export function pinnedSlot({ declared, pins = {}, verified, since, revision, match }: Slot): PinnedPolicy | undefined {
  return declared && pinned(declared, { digests: pins, verified, since, revision, match });
}

/** The fields of a version for the record. */
export function pinned(
  { definition, hash, settingsHash }: DeclaredPolicy,
  rest: Pick<PinnedPolicy, 'digests' | 'since'> & {
    readonly verified: PinnedPolicy['verified'];
    readonly revision: RevisionName | undefined;
    readonly match: PolicyMatch | undefined;
  },
): PinnedPolicy {
  const { digests, verified, since, revision, match } = rest;
  return {
    definition,
    hash,
    settingsHash,
    digests,
    ...(verified === undefined ? {} : { verified }),
    since,
    ...(revision === undefined ? {} : { revision }),
    ...(match === undefined ? {} : { match }),
  };
}

/** The digest of each module of a definition, builtin ones excepted; an error message when the revision lacks one. */
export function pinsOf(
  definition: PolicyDefinition,
  modules: readonly PinnedModule[],
): Record<string, string> | string {
  const pins: [reference: string, digest: string][] = [];
  for (const { reference, pin } of usesOf(definition, modules)) {
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

/** The verification that each module of a definition satisfied when the revision was validated, by reference. */
export function verifiedOf(definition: PolicyDefinition, modules: readonly PinnedModule[]): Record<string, string> {
  return Object.fromEntries(
    usesOf(definition, modules).flatMap(({ reference, pin }) =>
      typeof pin?.verifiedBy === 'string' ? [[reference, pin.verifiedBy]] : [],
    ),
  );
}

interface PinnedReference {
  readonly reference: string;
  readonly pin: PinnedModule | undefined;
}

/** The modules of a definition, with those of its revision. */
function usesOf(definition: PolicyDefinition, modules: readonly PinnedModule[]): readonly PinnedReference[] {
  return definition.kind === 'policy'
    ? [{ reference: definition.module, pin: modules[0] }]
    : definition.members.map(({ name, module }) => ({
        reference: module,
        pin: modules.find((pinnedModule) => pinnedModule.name === name),
      }));
}

/** The slot of the version to serve. */
export function targetOf({ wanted, slots }: RegistryEntry): Slot | undefined {
  const serving = wanted?.serving;
  return serving === undefined ? undefined : slots.get(wantedKey(serving));
}

/** The slot of the newest version that serves or will serve. */
export function desiredOf({ wanted, slots }: RegistryEntry): Slot | undefined {
  const newest = [wanted?.serving, ...(wanted?.staged ?? [])]
    .filter((one) => one !== undefined)
    .toSorted((a, b) => (b.revision ?? 0) - (a.revision ?? 0))[0];
  return newest === undefined ? undefined : slots.get(wantedKey(newest));
}

/** The wanted slots and the stand-in. */
export function slotsOf({ slots, standIn }: RegistryEntry): Slot[] {
  const wanted = [...slots.values()];
  return standIn === undefined || slots.get(standIn.key) === standIn ? wanted : [...wanted, standIn];
}

/** The version that serves. */
export function servingOf({ published }: RegistryEntry): LoadedRevision | undefined {
  return published?.kind === 'serving' ? published.loaded : undefined;
}

/** Digests of the modules of the serving and of staged versions. */
export function usedDigests(entry: RegistryEntry): readonly string[] {
  const revisions = [servingOf(entry), ...slotsOf(entry).map(({ loaded }) => loaded)];
  return revisions.flatMap((revision) => Object.values(revision?.digests ?? {}));
}

/** Why a version failed, and its stand-in as well, if any. */
export function failureText({ standIn }: RegistryEntry, { failure }: Slot): string {
  const { message = '' } = failure ?? {};
  // One cause is said once.
  return standIn?.failure === undefined || standIn.failure.message === message
    ? message
    : `${message}; and the version from before the restart cannot serve: ${standIn.failure.message}`;
}
