// The policies of one server: wanted, loaded and serving versions. Only a loaded version replaces the serving one, and
// all changes of one batch take effect at once. Uses no sockets, files or threads.
import { setImmediate as turn } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { PolicyDefinition } from '../../engine/index.ts';
import type { CompiledPolicyModule, TableChange } from '../../evaluation/index.ts';
import type { ServedPolicyPhase, ServedPolicyStatus } from '../status/served-policy-status.ts';
import { jitteredBackoff } from './backoff.ts';
import {
  cancelActivationRetry,
  cancelLingering,
  cancelRetries,
  updatePublished,
  stagedDefinitions,
  setWanted,
} from './entry-changes.ts';
import { isServed, isSettled, phaseOf, statusOf } from './entry-status.ts';
import { PublishedModules } from './published-modules.ts';
import {
  type LoadedRevision,
  loadedRevision,
  newEntry,
  type PhaseChange,
  pinned,
  pinnedSlot,
  recordedSlot,
  type RegistryEntry,
  servingOf,
  slotsOf,
  usedDigests,
} from './registry-entry.ts';
import { type EndedLoad, type LoadCollaborators, RegistryLoads, type RevisionLoad } from './registry-loads.ts';
import type { PinnedPolicy } from './serving-record.ts';
import { LINGER_MS, tableEntry } from './published-policy.ts';
import type { WantedChanges } from './wanted-policy.ts';

/**
 * How long the load of a first version may take before the stand-in serves: long for a source that answers, short for
 * the start of a pod. Milliseconds.
 */
export const STAND_IN_MS = 2_000;

/** Changes that are applied in one turn of the event loop: some 5 ms. */
const CHANGES_PER_TURN = 500;

/** Result of a change of one policy. */
export type ChangeResult = 'served' | 'failed' | 'removed';

export interface RegistryCollaborators extends LoadCollaborators {
  /**
   * Changes the table of every worker; resolves when all have applied it.
   * @param staged definitions that are loaded beside the table, of the changed policies
   */
  publish(change: TableChange, staged: ReadonlyMap<string, readonly PolicyDefinition[]>): Promise<void>;
  /** Called when the phase of a policy or its reason changes; undefined when the policy was removed. */
  phaseChanged(id: string, change: PhaseChange | undefined): void;
  /** Called once for each change of a policy, and for each retry. */
  changeEnded(result: ChangeResult): void;
  /** Called when other versions serve or other modules are needed. */
  servingChanged(): void;
  /** Called when the wanted version serves on every worker, with the time since it became wanted. Milliseconds. */
  swapTook?(ms: number): void;
  /**
   * Called when the state of policies may have changed.
   * @param removed removed policies
   * @param isSynced whether the source has been read
   */
  changed?(entries: readonly RegistryEntry[], removed: readonly RegistryEntry[], isSynced: boolean): void;
}

/** Parts of a table change besides the changed policies. */
interface Change {
  /** Newly loaded modules. */
  readonly loaded?: readonly CompiledPolicyModule[];
  /** Removed policies. */
  readonly removed?: readonly RegistryEntry[];
}

/** The policies of one server, from a policies file or from a cluster. */
export class PolicyRegistry {
  readonly #collaborators: RegistryCollaborators;
  readonly #entries = new Map<string, RegistryEntry>();
  readonly #loads: RegistryLoads;
  readonly #modules = new PublishedModules();
  /** What served before the restart, without stand-ins that are in use. */
  readonly #recorded: Map<string, PinnedPolicy>;
  readonly #standInTimers = new Set<NodeJS.Timeout>();
  readonly #waiters = new Set<{ readonly isDone: () => boolean; readonly resolve: () => void }>();
  /** An entry that was not settled when last looked at. */
  #unsettled: RegistryEntry | undefined;
  #isSynced = false;
  #stopped = false;

  /** @param recorded policies that served before the restart, by id */
  constructor(collaborators: RegistryCollaborators, recorded: ReadonlyMap<string, PinnedPolicy> = new Map()) {
    this.#collaborators = collaborators;
    this.#recorded = new Map(recorded);
    this.#loads = new RegistryLoads(
      collaborators,
      (entry, slot) => this.#entries.get(entry.id) === entry && slotsOf(entry).includes(slot),
      (loads) => this.#loaded(loads),
    );
  }

  /**
   * Loads what served before the restart, until the source has been read.
   * @param fileError the error of the policies file
   * @returns number of these policies
   */
  restore(fileError?: string): number {
    const entries = [...this.#recorded.keys()].map((id) => ({ ...newEntry(id), fileError }));
    for (const entry of entries) {
      this.#entries.set(entry.id, entry);
    }
    this.#loadStandIns(entries);
    this.#commit(entries);
    return entries.length;
  }

  /**
   * Applies changes of the source.
   * @param isFirst whether these are all policies, because the source was read for the first time
   */
  apply(changes: WantedChanges, isFirst: boolean): void {
    if (this.#stopped) {
      return;
    }
    const touched: RegistryEntry[] = [];
    const loads: RevisionLoad[] = [];
    const gone = isFirst ? [...this.#entries.keys()].filter((id) => !changes.has(id)) : [];
    for (const [id, wanted] of changes) {
      if (wanted === undefined) {
        gone.push(id);
        continue;
      }
      const entry = this.#entries.get(id) ?? newEntry(id);
      this.#entries.set(id, entry);
      touched.push(entry);
      loads.push(...setWanted(entry, wanted).map((slot): RevisionLoad => [entry, slot]));
    }
    this.#isSynced ||= isFirst;
    // Loads start before the commit, so that the policies do not count as settled.
    this.#loads.begin(loads);
    this.#scheduleStandIns(touched);
    this.#commit(touched, { removed: gone.flatMap((id) => this.#remove(id) ?? []) });
  }

  /** Applies many changes in slices, so that reviews are answered in between. Their loads start together. */
  async applyInTurns(changes: WantedChanges): Promise<void> {
    const all = [...changes];
    this.#loads.hold();
    try {
      for (let start = 0; start < all.length; start += CHANGES_PER_TURN) {
        this.apply(new Map(all.slice(start, start + CHANGES_PER_TURN)), false);
        await turn();
      }
    } finally {
      this.#loads.release();
    }
  }

  /** Resolves when the source has been read and every wanted version has been loaded or has failed once. */
  settled(): Promise<void> {
    return this.#waitUntil(() => this.#isSynced && this.#isSettled());
  }

  /** Like {@link settled} without the source: for what served before the restart. */
  restored(): Promise<void> {
    return this.#waitUntil(() => this.#isSettled());
  }

  /** Retries transient failures now. */
  retryNow(): void {
    this.#loads.begin(
      [...this.#entries.values()].flatMap((entry) =>
        slotsOf(entry)
          .filter(({ nextRetry, isLoading }) => nextRetry !== undefined && !isLoading)
          .map((slot): RevisionLoad => [entry, slot]),
      ),
    );
    for (const entry of this.#entries.values()) {
      this.#activateAgain(entry);
    }
  }

  /** Called when a worker could not activate a loaded version, for example out of memory. It is retried later. */
  activationFailed(id: string, message: string): void {
    const entry = this.#entries.get(id);
    // Every worker reports it, also new ones.
    if (entry?.published === undefined || entry.activationFailure?.published === entry.published || this.#stopped) {
      return;
    }
    const attempts = (entry.activationFailure?.attempts ?? 0) + 1;
    const delayMs = jitteredBackoff(attempts);
    cancelActivationRetry(entry);
    const retry = setTimeout(() => this.#activateAgain(entry), delayMs);
    retry.unref();
    entry.activationFailure = {
      published: entry.published,
      message,
      attempts,
      nextRetry: new Date(Date.now() + delayMs),
      retry,
    };
    this.#collaborators.changeEnded('failed');
    this.#report([entry]);
  }

  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** What serves of a policy. */
  serving(id: string): LoadedRevision | undefined {
    const entry = this.#entries.get(id);
    return entry && servingOf(entry);
  }

  /** Policies to record for the next start: serving ones, and stand-ins that do not serve yet. */
  lastGood(): PinnedPolicy[] {
    return [...this.#entries.values()].flatMap((entry) => {
      const { id, published, standIn } = entry;
      const serves = servingOf(entry);
      if (serves !== undefined) {
        return pinned(serves, {
          ...serves,
          verified: serves.verified,
          revision: serves.revision,
          match: published?.match,
        });
      }
      return (standIn === undefined ? this.#recorded.get(id) : pinnedSlot(standIn)) ?? [];
    });
  }

  entries(): Iterable<RegistryEntry> {
    return this.#entries.values();
  }

  statuses(): ServedPolicyStatus[] {
    return [...this.#entries.values()].map(statusOf).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** The status of one policy; undefined when the source does not have it. */
  status(id: string): ServedPolicyStatus | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined ? undefined : statusOf(entry);
  }

  /** The modules of the workers. */
  modules(): CompiledPolicyModule[] {
    return this.#modules.list();
  }

  /** The phase of every policy, for metrics. */
  *phases(): Iterable<readonly [id: string, phase: ServedPolicyPhase]> {
    for (const { id, reportedPhase } of this.#entries.values()) {
      yield [id, reportedPhase?.phase ?? 'Pending'];
    }
  }

  /** Cancels all loads and resolves all waiting calls. */
  stop(): void {
    this.#stopped = true;
    this.#loads.stop();
    for (const timer of this.#standInTimers) {
      clearTimeout(timer);
    }
    for (const entry of this.#entries.values()) {
      cancelRetries(slotsOf(entry));
      cancelActivationRetry(entry);
      cancelLingering(entry);
    }
    this.#resolveSettled();
  }

  #loaded(loads: readonly EndedLoad[]): void {
    const modules: CompiledPolicyModule[] = [];
    const failed: RegistryEntry[] = [];
    for (const [entry, slot, outcome] of loads) {
      if (!outcome.ok) {
        slot.failure = { reason: outcome.reason, message: outcome.message };
        slot.fetched = outcome.digests ?? {};
        if (slot !== entry.standIn) {
          this.#collaborators.changeEnded('failed');
          failed.push(entry);
        }
      } else if (slot.declared !== undefined) {
        slot.failure = undefined;
        slot.sourceError = outcome.sourceError;
        slot.loaded = loadedRevision(slot, slot.declared, outcome, [slot.loaded, servingOf(entry)]);
        modules.push(...outcome.modules);
      }
    }
    this.#loadStandIns(failed);
    this.#commit([...new Set(loads.map(([entry]) => entry))], { loaded: modules });
  }

  /** Loads stand-ins for policies that do not serve; once each. */
  #loadStandIns(entries: readonly RegistryEntry[]): void {
    const loads = entries.flatMap((entry): RevisionLoad[] => {
      const recorded = this.#recorded.get(entry.id);
      if (recorded === undefined || servingOf(entry) !== undefined) {
        return [];
      }
      this.#recorded.delete(entry.id);
      entry.standIn = recordedSlot(recorded);
      return [[entry, entry.standIn]];
    });
    this.#loads.begin(loads);
  }

  /** Loads stand-ins for first versions after a delay. */
  #scheduleStandIns(entries: readonly RegistryEntry[]): void {
    const recorded = entries.filter(({ id }) => this.#recorded.has(id));
    if (recorded.length === 0 || this.#stopped) {
      return;
    }
    const timer = setTimeout(() => {
      this.#standInTimers.delete(timer);
      this.#loadStandIns(recorded);
    }, STAND_IN_MS);
    timer.unref();
    this.#standInTimers.add(timer);
  }

  /** Publishes all changes at once and reports them. */
  #commit(entries: readonly RegistryEntry[], { loaded = [], removed = [] }: Change = {}): void {
    const changed = entries.filter((entry) => this.#updatePublished(entry));
    const used = new Map(entries.map((entry) => [entry.id, usedDigests(entry)]));
    for (const { id } of removed) {
      used.set(id, []);
    }
    for (const [id, digests] of used) {
      this.#collaborators.memory?.set(id, digests);
    }
    const { modules, retired } = this.#modules.change(used, loaded);
    if (changed.length > 0 || removed.length > 0 || modules.length > 0 || retired.length > 0) {
      const staged = new Map(entries.map((entry) => [entry.id, stagedDefinitions(entry)]));
      this.#publish(changed, { removals: removed.map(({ id }) => id), modules, retired }, staged);
      this.#collaborators.servingChanged();
    }
    this.#report(entries, removed);
  }

  /** Returns whether the entry has to be published. */
  #updatePublished(entry: RegistryEntry): boolean {
    const { lingering } = entry;
    const isNew = updatePublished(entry);
    if (entry.lingering.some((bucket) => !lingering.includes(bucket)) && !this.#stopped) {
      cancelLingering(entry);
      entry.lingerTimer = setTimeout(() => {
        entry.lingering = [];
        this.#commit([entry]);
      }, LINGER_MS);
      entry.lingerTimer.unref();
    }
    return isNew;
  }

  #publish(
    entries: readonly RegistryEntry[],
    rest: Omit<TableChange, 'upserts'>,
    staged: ReadonlyMap<string, readonly PolicyDefinition[]>,
  ): void {
    const upserts = entries.flatMap((entry) =>
      entry.published === undefined ? [] : [tableEntry(entry.id, entry.published)],
    );
    const published = entries.map((entry) => [entry, entry.published] as const);
    void this.#collaborators.publish({ upserts, ...rest }, staged).then(() => {
      this.#onPublished(published.filter(([entry, sent]) => entry.published === sent).map(([entry]) => entry));
    });
  }

  /** Publishes again what a worker failed to activate, if that is still current. */
  #activateAgain(entry: RegistryEntry): void {
    const { published, activationFailure } = entry;
    if (published === undefined || activationFailure?.published !== published || this.#stopped) {
      return;
    }
    cancelActivationRetry(entry);
    // A new object, so that this attempt differs from the previous one. The failure stays until all workers have it.
    entry.published = { ...published };
    entry.isOnAllWorkers = false;
    const staged = new Map([[entry.id, stagedDefinitions(entry)]]);
    this.#publish([entry], { removals: [], modules: [], retired: [] }, staged);
  }

  #remove(id: string): RegistryEntry | undefined {
    this.#recorded.delete(id);
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      cancelRetries(slotsOf(entry));
      cancelActivationRetry(entry);
      cancelLingering(entry);
      this.#entries.delete(id);
      this.#collaborators.phaseChanged(id, undefined);
      this.#collaborators.changeEnded('removed');
    }
    return entry;
  }

  /** Called when every worker has the published versions. */
  #onPublished(entries: readonly RegistryEntry[]): void {
    for (const entry of entries) {
      entry.isOnAllWorkers = true;
      entry.previous = undefined;
      if (entry.activationFailure?.published !== entry.published) {
        entry.activationFailure = undefined;
      }
      if (entry.waitingSince !== undefined && isServed(entry)) {
        this.#collaborators.swapTook?.(performance.now() - entry.waitingSince);
      }
    }
    this.#report(entries);
  }

  /** Reports changes of policies. */
  #report(entries: readonly RegistryEntry[], removed: readonly RegistryEntry[] = []): void {
    const current = entries.filter((entry) => this.#entries.get(entry.id) === entry);
    for (const entry of current) {
      if (entry.waitingSince !== undefined && isServed(entry)) {
        entry.waitingSince = undefined;
        this.#collaborators.changeEnded('served');
      }
      const facts = phaseOf(entry);
      if (!isDeepStrictEqual(facts, entry.reportedPhase)) {
        const isOther = facts.phase !== entry.reportedPhase?.phase || facts.reason !== entry.reportedPhase.reason;
        entry.since = isOther ? new Date() : entry.since;
        entry.reportedPhase = facts;
        this.#collaborators.phaseChanged(entry.id, facts);
      }
    }
    this.#collaborators.changed?.(current, removed, this.#isSynced);
    this.#resolveSettled();
  }

  #resolveSettled(): void {
    for (const waiter of [...this.#waiters].filter(({ isDone }) => this.#stopped || isDone())) {
      this.#waiters.delete(waiter);
      waiter.resolve();
    }
  }

  /** Looks at all entries only when the one found last has settled: of thousands, the last is loaded last. */
  #isSettled(): boolean {
    const known = this.#unsettled;
    if (known === undefined || this.#entries.get(known.id) !== known || isSettled(known)) {
      this.#unsettled = [...this.#entries.values()].findLast((entry) => !isSettled(entry));
    }
    return this.#unsettled === undefined;
  }

  #waitUntil(isDone: () => boolean): Promise<void> {
    if (this.#stopped || isDone()) {
      return Promise.resolve();
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiters.add({ isDone, resolve });
    return promise;
  }
}
