// Loads versions of policies: reading, fetching, compiling, checking, and retries.
import { isDeepStrictEqual } from 'node:util';
import type { PolicyDefinition } from '../../engine/index.ts';
import { jitteredBackoff } from './backoff.ts';
import type { LoadOutcome, LoadRequest, PolicyMemory, ReadPolicy, UnreadPolicy } from '../../evaluation/index.ts';
import { pinsOf, type RegistryEntry, servingOf, type Slot, slotsOf, verifiedOf } from './registry-entry.ts';

/** A version of a policy to load. */
export type RevisionLoad = readonly [entry: RegistryEntry, slot: Slot];

/** Result of a load. */
export type EndedLoad = readonly [entry: RegistryEntry, slot: Slot, outcome: LoadOutcome];

export interface LoadCollaborators {
  /** Reads policies; results are in the order of the policies. Never rejects. */
  read(policies: readonly UnreadPolicy[]): Promise<readonly ReadPolicy[]>;
  /** Fetches, compiles and checks. Results come in any order. */
  load(requests: readonly LoadRequest[], done: (outcomes: ReadonlyMap<LoadRequest, LoadOutcome>) => void): void;
  /** Whether a policy belongs to a tenant. Default: no. */
  isForTenant?(id: string): boolean;
  /** The namespace of a policy. Default: none. */
  namespaceOf?(id: string): string | undefined;
  /** The memory that policies hold. Default: without a limit. */
  readonly memory?: Pick<PolicyMemory, 'admitted' | 'set'>;
}

/** The loads of one registry. */
export class RegistryLoads {
  readonly #collaborators: LoadCollaborators;
  readonly #isWanted: (entry: RegistryEntry, slot: Slot) => boolean;
  readonly #ended: (loads: readonly EndedLoad[]) => void;
  /** Loads that wait for {@link release}; undefined when loads start at once. */
  #held: RevisionLoad[] | undefined;
  #stopped = false;

  /**
   * @param isWanted whether a slot is still in use
   * @param ended called with ended loads of slots in use; loads that end together are reported together
   */
  constructor(
    collaborators: LoadCollaborators,
    isWanted: (entry: RegistryEntry, slot: Slot) => boolean,
    ended: (loads: readonly EndedLoad[]) => void,
  ) {
    this.#collaborators = collaborators;
    this.#isWanted = isWanted;
    this.#ended = ended;
  }

  begin(loads: readonly RevisionLoad[]): void {
    if (this.#stopped) {
      return;
    }
    for (const [, slot] of loads) {
      clearTimeout(slot.retry);
      slot.nextRetry = undefined;
      slot.isLoading = true;
    }
    if (this.#held === undefined) {
      this.#start(loads);
    } else {
      this.#held.push(...loads);
    }
  }

  /** Keeps the loads that begin until {@link release}: loads that start together fetch a module once. */
  hold(): void {
    this.#held ??= [];
  }

  /** Starts the loads that were kept. */
  release(): void {
    const loads = this.#held ?? [];
    this.#held = undefined;
    this.#start(loads);
  }

  #start(loads: readonly RevisionLoad[]): void {
    if (loads.length === 0 || this.#stopped) {
      return;
    }
    const unread = loads.filter(([, { declared }]) => declared === undefined);
    if (unread.length === 0) {
      this.#fetch(loads);
    } else {
      void this.#readThenFetch(loads, unread);
    }
  }

  /** Starts no more loads. */
  stop(): void {
    this.#stopped = true;
  }

  async #readThenFetch(loads: readonly RevisionLoad[], unread: readonly RevisionLoad[]): Promise<void> {
    const read = await this.#collaborators.read(unread.map(([{ id }, { wanted }]) => ({ id, spec: wanted?.snapshot })));
    const failed = unread.flatMap(([entry, slot], index): EndedLoad[] => {
      const outcome = takeOver(slot, read[index]);
      return outcome === undefined ? [] : [[entry, slot, outcome]];
    });
    this.#end(failed);
    this.#fetch(loads.filter(([, { declared }]) => declared !== undefined));
  }

  #fetch(loads: readonly RevisionLoad[]): void {
    const requests = new Map<LoadRequest, RevisionLoad>();
    this.#end(loads.map(sharedLoad).filter((load) => load !== undefined));
    for (const load of loads.filter(([, { isLoading }]) => isLoading)) {
      const [{ id }, { declared, pins, verified, isFromCache }] = load;
      if (declared !== undefined && this.#isWanted(...load)) {
        const request: LoadRequest = {
          id,
          definition: declared.definition,
          ...(pins === undefined ? {} : { digests: pins }),
          ...(verified === undefined ? {} : { verified }),
          ...(isFromCache ? { from: 'cache' } : {}),
          isForTenant: this.#collaborators.isForTenant?.(id) ?? false,
          namespace: this.#collaborators.namespaceOf?.(id),
        };
        requests.set(request, load);
      }
    }
    if (requests.size === 0 || this.#stopped) {
      return;
    }
    this.#collaborators.load([...requests.keys()], (outcomes) => {
      this.#end(
        [...outcomes].flatMap(([request, outcome]): EndedLoad[] => {
          const load = requests.get(request);
          return load === undefined ? [] : [[...load, outcome]];
        }),
      );
    });
  }

  #end(loads: readonly EndedLoad[]): void {
    const { memory } = this.#collaborators;
    const wanted = loads
      .filter(([entry, slot]) => this.#isWanted(entry, slot))
      .map(([entry, slot, outcome]): EndedLoad => [entry, slot, memory?.admitted(entry.id, outcome) ?? outcome]);
    for (const [entry, slot, outcome] of wanted) {
      slot.isLoading = false;
      slot.attempts += 1;
      if (isWorthRetrying(slot, outcome) && !this.#stopped) {
        const notBeforeMs = outcome.ok ? 0 : (outcome.retryAfterMs ?? 0);
        const delayMs = Math.max(jitteredBackoff(slot.attempts), notBeforeMs);
        slot.nextRetry = new Date(Date.now() + delayMs);
        slot.retry = setTimeout(() => this.begin([[entry, slot]]), delayMs);
        slot.retry.unref();
      }
    }
    if (wanted.length > 0) {
      this.#ended(wanted);
    }
  }
}

/** The end of a load of what is loaded already, by a version that differs only in how the policy is enforced. */
function sharedLoad([entry, slot]: RevisionLoad): EndedLoad | undefined {
  const { declared, pins } = slot;
  const loaded = [servingOf(entry), ...slotsOf(entry).map((one) => one.loaded)].find(
    (one) =>
      declared !== undefined &&
      isDeepStrictEqual(one?.digests, pins) &&
      isDeepStrictEqual(evaluatedPart(one?.definition), evaluatedPart(declared.definition)),
  );
  if (loaded === undefined) {
    return undefined;
  }
  const { digests, verified } = loaded;
  return [entry, slot, { ok: true, digests, ...(verified === undefined ? {} : { verified }), modules: [] }];
}

function evaluatedPart(definition: PolicyDefinition | undefined): object {
  return { ...definition, mode: undefined, failurePolicy: undefined };
}

/**
 * Whether a retry may succeed. A revision was validated with its pinned modules, so a failure of this server alone,
 * such as a check that took too long on a busy machine, may be transient as well.
 */
function isWorthRetrying({ pins, isFromCache }: Slot, outcome: LoadOutcome): boolean {
  if (outcome.ok) {
    // The source may have a newer module.
    return outcome.sourceError !== undefined;
  }
  const { transient, reason } = outcome;
  const isOfThisServer = pins !== undefined && (reason === 'InvalidModule' || reason === 'SettingsCheckFailed');
  return !isFromCache && (transient || isOfThisServer);
}

/** Stores the declaration of a policy in its slot. Returns a result if the policy cannot be loaded. */
function takeOver(slot: Slot, read: ReadPolicy | undefined): LoadOutcome | undefined {
  const fails = (message: string, transient = false): LoadOutcome => {
    return { ok: false, reason: 'InvalidDefinition', message, transient };
  };
  if (read === undefined || 'problems' in read) {
    return fails(read?.problems.join('; ') ?? 'the revision cannot be read', read?.isTransient);
  }
  const modules = slot.wanted?.modules;
  const pins = modules && pinsOf(read.definition, modules);
  if (typeof pins === 'string') {
    return fails(pins);
  }
  slot.declared = read;
  slot.pins = pins;
  slot.verified = modules && verifiedOf(read.definition, modules);
  return undefined;
}
