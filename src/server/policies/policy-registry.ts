// The policies of one server: what their source wants, what is loaded, and what serves. What serves is replaced only by what
// is loaded, and by all policies of one batch at once. Holds no sockets, files or threads.
import { isDeepStrictEqual } from 'node:util';
import type { PolicyDefinition } from '../../engine/index.ts';
import type { CompiledPolicyModule, TableChange } from '../../evaluation/index.ts';
import type { PolicyPhase, PolicyStatus } from '../status/policy-status.ts';
import { jitteredBackoff } from './backoff.ts';
import { forgetActivation, forgetLingering, forgetRetries, show, stagedBeside, want } from './entry-changes.ts';
import { isServed, isSettled, phaseOf, statusOf } from './entry-status.ts';
import { PublishedModules } from './published-modules.ts';
import {
  loadedRevision,
  newEntry,
  type PhaseChange,
  pinned,
  pinnedSlot,
  recordedSlot,
  type RegistryEntry,
  servingOf,
  slotsOf,
} from './registry-entry.ts';
import { type EndedLoad, type LoadCollaborators, RegistryLoads, type RevisionLoad } from './registry-loads.ts';
import type { PinnedPolicy } from './serving-record.ts';
import { LINGER_MS, tableEntry } from './shown-policy.ts';
import type { WantedChanges } from './wanted-policy.ts';

/**
 * How long a first version may take before what served before a restart stands in for it: long against loading from
 * a source that answers, short against the start of a pod. Milliseconds.
 */
export const STAND_IN_MS = 2_000;

/** How a change of one policy ended. */
export type ChangeResult = 'served' | 'failed' | 'removed';

export interface RegistryCollaborators extends LoadCollaborators {
  /**
   * Changes the table of every worker; resolves when all have changed over.
   * @param staged what is loaded beside the table, of the policies that the change is about
   */
  publish(change: TableChange, staged: ReadonlyMap<string, readonly PolicyDefinition[]>): Promise<void>;
  /** A policy is in another phase, or in it for another reason; undefined when the policy is gone. */
  phaseChanged(id: string, change: PhaseChange | undefined): void;
  /** Called once for each change of a policy, and for each later try. */
  changeEnded(result: ChangeResult): void;
  /** Other versions serve, or other modules are needed, than before. */
  servingChanged(): void;
  /** The version to serve serves in every worker, this time after it became that. Milliseconds. */
  flipTook?(ms: number): void;
  /**
   * The state of these policies may have changed.
   * @param removed policies that are gone
   * @param isSynced whether the source has been read
   */
  changed?(entries: readonly RegistryEntry[], removed: readonly RegistryEntry[], isSynced: boolean): void;
}

/** What a change of the table is made of besides the policies that changed. */
interface Change {
  /** Modules that were loaded. */
  readonly loaded?: readonly CompiledPolicyModule[];
  /** Policies that are gone. */
  readonly removed?: readonly RegistryEntry[];
}

/** The policies of one server, from a policies file or from a cluster. */
export class PolicyRegistry {
  readonly #with: RegistryCollaborators;
  readonly #entries = new Map<string, RegistryEntry>();
  readonly #loads: RegistryLoads;
  readonly #modules = new PublishedModules();
  /** What served before a restart and has not stood in yet. */
  readonly #recorded: Map<string, PinnedPolicy>;
  readonly #standInTimers = new Set<NodeJS.Timeout>();
  readonly #waiting = new Set<{ readonly isOver: () => boolean; readonly resolve: () => void }>();
  #isSynced = false;
  #stopped = false;

  /** @param recorded what served before a restart, by id. */
  constructor(collaborators: RegistryCollaborators, recorded: ReadonlyMap<string, PinnedPolicy> = new Map()) {
    this.#with = collaborators;
    this.#recorded = new Map(recorded);
    this.#loads = new RegistryLoads(
      collaborators,
      (entry, slot) => this.#entries.get(entry.id) === entry && slotsOf(entry).includes(slot),
      (loads) => this.#loaded(loads),
    );
  }

  /**
   * Serves what served before a restart until the source has been read.
   * @param unusable why the policies file cannot be used
   * @returns how many policies that are
   */
  restore(unusable?: string): number {
    const entries = [...this.#recorded.keys()].map((id) => ({ ...newEntry(id), unusable }));
    for (const entry of entries) {
      this.#entries.set(entry.id, entry);
    }
    this.#standIn(entries);
    this.#commit(entries);
    return entries.length;
  }

  /**
   * Follows what the source wants of some policies.
   * @param isFirst whether these are all policies that there are, because the source was read for the first time
   */
  want(changes: WantedChanges, isFirst: boolean): void {
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
      loads.push(...want(entry, wanted).map((slot): RevisionLoad => [entry, slot]));
    }
    this.#isSynced ||= isFirst;
    // Loads are begun first, so that nothing looks settled that is not.
    this.#loads.begin(loads);
    this.#standInLater(touched);
    this.#commit(touched, { removed: gone.flatMap((id) => this.#remove(id) ?? []) });
  }

  /** Resolves when the source has been read, and every wanted version has been loaded or has failed once. */
  settled(): Promise<void> {
    return this.#when(() => this.#isSynced && this.#isSettled());
  }

  /** The same without waiting for the source: of what served before a restart. */
  restored(): Promise<void> {
    return this.#when(() => this.#isSettled());
  }

  /** Loads anew what failed for a reason that may pass, without waiting for its next retry. */
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

  /** A worker could not take up a version that was loaded, out of memory perhaps; it is tried again later. */
  activationFailed(id: string, message: string): void {
    const entry = this.#entries.get(id);
    // Every worker reports it, and every one that replaces another.
    if (entry?.shown === undefined || entry.activationFailure?.of === entry.shown || this.#stopped) {
      return;
    }
    const attempts = (entry.activationFailure?.attempts ?? 0) + 1;
    const delayMs = jitteredBackoff(attempts);
    forgetActivation(entry);
    const retry = setTimeout(() => this.#activateAgain(entry), delayMs);
    retry.unref();
    entry.activationFailure = { of: entry.shown, message, attempts, nextRetry: new Date(Date.now() + delayMs), retry };
    this.#with.changeEnded('failed');
    this.#look([entry]);
  }

  has(id: string): boolean {
    return this.#entries.has(id);
  }

  /** What is to be kept for the next start: what serves, and what served before where nothing does yet. */
  lastGood(): PinnedPolicy[] {
    return [...this.#entries.values()].flatMap((entry) => {
      const { id, shown, standIn } = entry;
      const serves = servingOf(entry);
      if (serves !== undefined) {
        return pinned(serves, { ...serves, revision: serves.revision, match: shown?.match });
      }
      return (standIn === undefined ? this.#recorded.get(id) : pinnedSlot(standIn)) ?? [];
    });
  }

  entries(): Iterable<RegistryEntry> {
    return this.#entries.values();
  }

  statuses(): PolicyStatus[] {
    return [...this.#entries.values()].map(statusOf).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** What is known of one policy; undefined when the source has none of that id. */
  status(id: string): PolicyStatus | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined ? undefined : statusOf(entry);
  }

  /** The modules that workers have. */
  modules(): CompiledPolicyModule[] {
    return this.#modules.list();
  }

  /** The phase of every policy, for metrics. */
  *phases(): Iterable<readonly [id: string, phase: PolicyPhase]> {
    for (const { id, facts } of this.#entries.values()) {
      yield [id, facts?.phase ?? 'Pending'];
    }
  }

  /** Begins no more loads; ends every wait for some. */
  stop(): void {
    this.#stopped = true;
    this.#loads.stop();
    for (const timer of this.#standInTimers) {
      clearTimeout(timer);
    }
    for (const entry of this.#entries.values()) {
      forgetRetries(slotsOf(entry));
      forgetActivation(entry);
      forgetLingering(entry);
    }
    this.#tellSettled();
  }

  #loaded(loads: readonly EndedLoad[]): void {
    const modules: CompiledPolicyModule[] = [];
    const failed: RegistryEntry[] = [];
    for (const [entry, slot, outcome] of loads) {
      if (!outcome.ok) {
        slot.failure = { reason: outcome.reason, message: outcome.message };
        slot.fetched = outcome.digests ?? {};
        if (slot !== entry.standIn) {
          this.#with.changeEnded('failed');
          failed.push(entry);
        }
      } else if (slot.declared !== undefined) {
        slot.failure = undefined;
        slot.sourceError = outcome.sourceError;
        slot.loaded = loadedRevision(slot, slot.declared, outcome.digests, [slot.loaded, servingOf(entry)]);
        modules.push(...outcome.modules);
      }
    }
    this.#standIn(failed);
    this.#commit([...new Set(loads.map(([entry]) => entry))], { loaded: modules });
  }

  /** Lets what served before a restart serve where nothing does; once. */
  #standIn(entries: readonly RegistryEntry[]): void {
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

  /** Lets what served before a restart stand in for first versions that take long. */
  #standInLater(entries: readonly RegistryEntry[]): void {
    const recorded = entries.filter(({ id }) => this.#recorded.has(id));
    if (recorded.length === 0 || this.#stopped) {
      return;
    }
    const timer = setTimeout(() => {
      this.#standInTimers.delete(timer);
      this.#standIn(recorded);
    }, STAND_IN_MS);
    timer.unref();
    this.#standInTimers.add(timer);
  }

  /** Publishes what workers are to have now, in one change, and reports what is different. */
  #commit(entries: readonly RegistryEntry[], { loaded = [], removed = [] }: Change = {}): void {
    const shown = entries.filter((entry) => this.#show(entry));
    const { modules, retired } = this.#modules.change(this.#usedDigests(), loaded);
    if (shown.length > 0 || removed.length > 0 || modules.length > 0 || retired.length > 0) {
      const staged = new Map(entries.map((entry) => [entry.id, stagedBeside(entry)]));
      this.#publish(shown, { removals: removed.map(({ id }) => id), modules, retired }, staged);
      this.#with.servingChanged();
    }
    this.#look(entries, removed);
  }

  /** Returns whether the entry is to be published. */
  #show(entry: RegistryEntry): boolean {
    const { lingering } = entry;
    const isNew = show(entry);
    if (entry.lingering.some((bucket) => !lingering.includes(bucket)) && !this.#stopped) {
      forgetLingering(entry);
      entry.lingers = setTimeout(() => {
        entry.lingering = [];
        this.#commit([entry]);
      }, LINGER_MS);
      entry.lingers.unref();
    }
    return isNew;
  }

  #publish(
    shown: readonly RegistryEntry[],
    rest: Omit<TableChange, 'upserts'>,
    staged: ReadonlyMap<string, readonly PolicyDefinition[]>,
  ): void {
    const upserts = shown.flatMap((entry) => (entry.shown === undefined ? [] : [tableEntry(entry.id, entry.shown)]));
    const then = shown.map((entry) => [entry, entry.shown] as const);
    void this.#with.publish({ upserts, ...rest }, staged).then(() => {
      this.#reached(then.filter(([entry, what]) => entry.shown === what).map(([entry]) => entry));
    });
  }

  /** Publishes again what a worker could not take up, if there is such. */
  #activateAgain(entry: RegistryEntry): void {
    const { shown, activationFailure } = entry;
    if (shown === undefined || activationFailure?.of !== shown || this.#stopped) {
      return;
    }
    forgetActivation(entry);
    // A new object, so that this try is told from the one before; the failure stays until all workers have it.
    entry.shown = { ...shown };
    entry.isEverywhere = false;
    const staged = new Map([[entry.id, stagedBeside(entry)]]);
    this.#publish([entry], { removals: [], modules: [], retired: [] }, staged);
  }

  #usedDigests(): Set<string> {
    const used = new Set<string>();
    for (const entry of this.#entries.values()) {
      for (const revision of [servingOf(entry), ...slotsOf(entry).map((slot) => slot.loaded)]) {
        for (const digest of Object.values(revision?.digests ?? {})) {
          used.add(digest);
        }
      }
    }
    return used;
  }

  #remove(id: string): RegistryEntry | undefined {
    this.#recorded.delete(id);
    const entry = this.#entries.get(id);
    if (entry !== undefined) {
      forgetRetries(slotsOf(entry));
      forgetActivation(entry);
      forgetLingering(entry);
      this.#entries.delete(id);
      this.#with.phaseChanged(id, undefined);
      this.#with.changeEnded('removed');
    }
    return entry;
  }

  /** Every worker has what is shown of these policies. */
  #reached(entries: readonly RegistryEntry[]): void {
    for (const entry of entries) {
      entry.isEverywhere = true;
      entry.before = undefined;
      if (entry.activationFailure?.of !== entry.shown) {
        entry.activationFailure = undefined;
      }
      if (entry.waitingSince !== undefined && isServed(entry)) {
        this.#with.flipTook?.(performance.now() - entry.waitingSince);
      }
    }
    this.#look(entries);
  }

  /** Reports what is different about some policies. */
  #look(entries: readonly RegistryEntry[], removed: readonly RegistryEntry[] = []): void {
    const current = entries.filter((entry) => this.#entries.get(entry.id) === entry);
    for (const entry of current) {
      if (entry.waitingSince !== undefined && isServed(entry)) {
        entry.waitingSince = undefined;
        this.#with.changeEnded('served');
      }
      const facts = phaseOf(entry);
      if (!isDeepStrictEqual(facts, entry.facts)) {
        const isOther = facts.phase !== entry.facts?.phase || facts.reason !== entry.facts.reason;
        entry.since = isOther ? new Date() : entry.since;
        entry.facts = facts;
        this.#with.phaseChanged(entry.id, facts);
      }
    }
    this.#with.changed?.(current, removed, this.#isSynced);
    this.#tellSettled();
  }

  #tellSettled(): void {
    for (const waiting of [...this.#waiting].filter(({ isOver }) => this.#stopped || isOver())) {
      this.#waiting.delete(waiting);
      waiting.resolve();
    }
  }

  #isSettled(): boolean {
    return this.#entries.values().every(isSettled);
  }

  #when(isOver: () => boolean): Promise<void> {
    if (this.#stopped || isOver()) {
      return Promise.resolve();
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.add({ isOver, resolve });
    return promise;
  }
}
