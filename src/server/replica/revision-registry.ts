// The life of every policy of a replica: which revisions are wanted, which are loaded, which one answers. What serves is
// replaced by what is loaded only, and by all policies of one batch at once. Holds no sockets, files or threads.
import { isDeepStrictEqual } from 'node:util';
import type { PolicyDefinition } from '../../engine/index.ts';
import { jitteredBackoff } from '../policies/backoff.ts';
import type { CompiledPolicyModule } from '../../evaluation/index.ts';
import type { TableChange } from '../../evaluation/index.ts';
import type { PinnedPolicy, RegistryCollaborators } from '../policies/policy-registry.ts';
import type { PolicyPhase, PolicyStatus } from '../status/policy-status.ts';
import { forgetActivation, forgetLingering, forgetRetries, show, stagedBeside, want } from './revision-changes.ts';
import {
  isSettled,
  LINGER_MS,
  loadedRevision,
  newEntry,
  phaseOf,
  pinnedOf,
  recordedSlot,
  type RevisionEntry,
  servingOf,
  slotsOf,
  statusOf,
  tableEntry,
  targetOf,
} from './revision-entry.ts';
import type { WantedChanges } from './revision-feed.ts';
import { type EndedLoad, type LoadCollaborators, type RevisionLoad, RevisionLoads } from './revision-loads.ts';
import { RevisionModules } from './revision-modules.ts';
import { RevisionView } from './revision-view.ts';

/** Whom the registry asks and tells. */
export interface RevisionCollaborators
  extends LoadCollaborators, Pick<RegistryCollaborators, 'phaseChanged' | 'changeEnded'> {
  /**
   * Changes the table of every worker; resolves when all have changed over.
   * @param staged what is loaded beside the table now, of the policies that the change is about
   */
  publish(change: TableChange, staged: ReadonlyMap<string, readonly PolicyDefinition[]>): Promise<void>;
  /** Other revisions serve, or other modules are needed, than before. */
  servingChanged(): void;
  /** A revision that became the one to serve does so in every worker, after this time. Milliseconds. */
  flipTook(ms: number): void;
}

/** What else there is to a change of the table. */
interface Change {
  /** Modules that are there now. */
  readonly loaded?: readonly CompiledPolicyModule[];
  /** Policies that are gone. */
  readonly removed?: readonly RevisionEntry[];
}

/** The policies of a replica, and their revisions. */
export class RevisionRegistry {
  /** What there is to say of revisions. */
  readonly view: RevisionView;
  readonly #with: RevisionCollaborators;
  readonly #entries = new Map<string, RevisionEntry>();
  readonly #loads: RevisionLoads;
  readonly #modules = new RevisionModules();
  /** Until it is restored: what is restored is all that is needed of it. */
  #recorded: ReadonlyMap<string, PinnedPolicy>;
  readonly #waiting = new Set<{ readonly isOver: () => boolean; readonly resolve: () => void }>();
  #isSynced = false;
  #stopped = false;

  /** @param recorded what served before a restart, by id. */
  constructor(collaborators: RevisionCollaborators, recorded: ReadonlyMap<string, PinnedPolicy> = new Map()) {
    this.#with = collaborators;
    this.#recorded = recorded;
    this.view = new RevisionView(this.#entries);
    this.#loads = new RevisionLoads(
      collaborators,
      (entry, slot) => this.#entries.get(entry.id) === entry && slotsOf(entry).includes(slot),
      (loads) => this.#loaded(loads),
    );
  }

  /** Serves what served before a restart, whatever the cluster will say. How many policies that are. */
  restore(): number {
    const loads: RevisionLoad[] = [];
    for (const [id, pinned] of this.#recorded) {
      if (pinned.revision !== undefined) {
        const entry = newEntry(id);
        entry.standIn = recordedSlot(pinned, pinned.revision);
        this.#entries.set(id, entry);
        loads.push([entry, entry.standIn]);
      }
    }
    this.#recorded = new Map();
    this.#loads.begin(loads);
    this.#commit(loads.map(([entry]) => entry));
    return loads.length;
  }

  /** Takes over what the cluster wants of some policies; of all that there are, when it is the first that is heard. */
  want(changes: WantedChanges, isFirst: boolean): void {
    const touched: RevisionEntry[] = [];
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
    this.#commit(touched, { removed: gone.flatMap((id) => this.#remove(id) ?? []) });
  }

  /** Resolves when the cluster has been read, and all that it wants has been loaded or has failed once. */
  settled(): Promise<void> {
    return this.#when(() => this.#isSynced && this.#isSettled());
  }

  /** Resolves when what served before the restart serves again or has failed once. */
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

  /** A worker could not take up a revision that the loader found good: it was out of memory, perhaps. Tried again later. */
  activationFailed(id: string, message: string): void {
    const entry = this.#entries.get(id);
    // Every worker tells it, and every one that is replaced.
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
    return [...this.#entries.values()].flatMap((entry): PinnedPolicy[] => {
      const serves = servingOf(entry);
      if (serves !== undefined) {
        const { definition, hash, settingsHash, digests, since, revision } = serves;
        const match = entry.shown?.match;
        return [
          { definition, hash, settingsHash, digests, since, revision, ...(match === undefined ? {} : { match }) },
        ];
      }
      return entry.standIn === undefined ? [] : pinnedOf(entry.standIn);
    });
  }

  statuses(): PolicyStatus[] {
    return [...this.#entries.values()].map(statusOf).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** What is known of one policy; undefined when it has no revisions. */
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

  /** Begins no more loads; whoever waits for some waits no longer. */
  stop(): void {
    this.#stopped = true;
    this.#loads.stop();
    for (const entry of this.#entries.values()) {
      forgetRetries(slotsOf(entry));
      forgetActivation(entry);
      forgetLingering(entry);
    }
    this.#tellSettled();
  }

  #loaded(loads: readonly EndedLoad[]): void {
    const modules: CompiledPolicyModule[] = [];
    for (const [, slot, outcome] of loads) {
      if (!outcome.ok) {
        slot.failure = { reason: outcome.reason, message: outcome.message };
        this.#with.changeEnded('failed');
      } else if (slot.declared !== undefined) {
        slot.failure = undefined;
        slot.loaded = loadedRevision(slot, slot.declared, outcome.digests);
        modules.push(...outcome.modules);
      }
    }
    this.#commit([...new Set(loads.map(([entry]) => entry))], { loaded: modules });
  }

  /** Brings the table of the workers to where it is to be now, in one change; then tells what is different. */
  #commit(entries: readonly RevisionEntry[], { loaded = [], removed = [] }: Change = {}): void {
    const shown = entries.filter((entry) => this.#show(entry));
    const { modules, retired } = this.#modules.change(this.#usedDigests(), loaded);
    if (shown.length > 0 || removed.length > 0 || modules.length > 0 || retired.length > 0) {
      const staged = new Map(entries.map((entry) => [entry.id, stagedBeside(entry)]));
      this.#publish(shown, { removals: removed.map(({ id }) => id), modules, retired }, staged);
      this.#with.servingChanged();
    }
    this.#look(entries, removed);
  }

  /** Whether it is to be published. */
  #show(entry: RevisionEntry): boolean {
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
    shown: readonly RevisionEntry[],
    rest: Omit<TableChange, 'upserts'>,
    staged: ReadonlyMap<string, readonly PolicyDefinition[]>,
  ): void {
    const upserts = shown.flatMap((entry) => (entry.shown === undefined ? [] : [tableEntry(entry.id, entry.shown)]));
    const then = shown.map((entry) => [entry, entry.shown] as const);
    void this.#with.publish({ upserts, ...rest }, staged).then(() => {
      this.#reached(then.filter(([entry, what]) => entry.shown === what).map(([entry]) => entry));
    });
  }

  /** Gives the workers once more what one of them could not take up, if there is such. */
  #activateAgain(entry: RevisionEntry): void {
    const { shown, activationFailure } = entry;
    if (shown === undefined || activationFailure?.of !== shown || this.#stopped) {
      return;
    }
    forgetActivation(entry);
    // Another one to tell apart what becomes of it; until that is known the failure stays.
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

  #remove(id: string): RevisionEntry | undefined {
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
  #reached(entries: readonly RevisionEntry[]): void {
    for (const entry of entries) {
      entry.isEverywhere = true;
      entry.before = undefined;
      if (entry.activationFailure?.of !== entry.shown) {
        entry.activationFailure = undefined;
      }
      const serves = servingOf(entry);
      if (serves !== undefined && entry.activationFailure === undefined) {
        this.#with.changeEnded('served');
        if (entry.waitingSince !== undefined && targetOf(entry)?.loaded === serves) {
          this.#with.flipTook(performance.now() - entry.waitingSince);
          entry.waitingSince = undefined;
        }
      }
    }
    this.#look(entries);
  }

  /** Tells what is different about some policies. */
  #look(entries: readonly RevisionEntry[], removed: readonly RevisionEntry[] = []): void {
    const current = entries.filter((entry) => this.#entries.get(entry.id) === entry);
    for (const entry of current) {
      const facts = phaseOf(entry);
      if (!isDeepStrictEqual(facts, entry.facts)) {
        const isOther = facts.phase !== entry.facts?.phase || facts.reason !== entry.facts.reason;
        entry.since = isOther ? new Date() : entry.since;
        entry.facts = facts;
        this.#with.phaseChanged(entry.id, facts);
      }
    }
    this.view.update(current, removed, this.#isSynced);
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
