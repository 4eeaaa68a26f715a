// Reports of a replica's revisions.
import { isDeepStrictEqual } from 'node:util';
import { type LoadedRevision, type RegistryEntry, servingOf, type Slot, targetOf } from '../policies/registry-entry.ts';
import type { RefusedReport, RevisionReport } from '../../control/index.ts';
import type { MonitoredVerdict } from '../../engine/index.ts';
import { MonitoredCounts } from '../monitoring/monitored-counts.ts';
import type { RevisionName } from '../policies/serving-record.ts';
import type { Deviation, ReplicaState, ServedRevision } from './replica-state.ts';

/** The state of the registry, as controllers see it. */
export class RevisionReports implements ReplicaState {
  readonly #entries: () => Iterable<RegistryEntry>;
  readonly #reports = new Map<string, RevisionReport>();
  /** Names of reported revisions, by policy id. */
  readonly #names = new Map<string, readonly string[]>();
  readonly #listeners = new Set<(names: readonly string[]) => void>();
  readonly #monitored: MonitoredCounts;
  /** By name of the PolicyRevision. */
  /** By the names of revisions whose parameters were tried; undefined: they refuse no namespace. */
  readonly #refused = new Map<string, RefusedReport | undefined>();
  /** Revisions that failed for parameters, by name. */
  #waiting: ReadonlyMap<string, RevisionReport> = new Map();
  #mismatched: readonly Deviation[] = [];
  readonly #isReady: () => boolean;
  #isSynced = false;

  /**
   * @param entries entries of the registry
   * @param monitoredReportMs see MonitoredCountsOptions
   * @param isReady whether API servers may send requests; call {@link readyChanged} when it changes
   */
  constructor(entries: () => Iterable<RegistryEntry>, monitoredReportMs?: number, isReady = (): boolean => true) {
    this.#entries = entries;
    this.#isReady = isReady;
    this.#monitored = new MonitoredCounts({
      changed: (names) => this.#notify(names),
      ...(monitoredReportMs === undefined ? {} : { reportMs: monitoredReportMs }),
    });
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  *reports(): Iterable<RevisionReport> {
    for (const report of this.#reports.values()) {
      yield this.#current(report);
    }
    for (const [name, report] of this.#waiting) {
      if (!this.#reports.has(name)) {
        yield report;
      }
    }
  }

  report(name: string): RevisionReport | undefined {
    const report = this.#reports.get(name);
    return report === undefined ? this.#waiting.get(name) : this.#current(report);
  }

  /** Reports all revisions again, because what API servers get has changed. */
  readyChanged(): void {
    this.#notify([...this.#reports.keys()]);
  }

  /** Reports the parameters for which revisions wait: all of these revisions. */
  revisionsWaiting(reports: readonly RevisionReport[]): void {
    const before = this.#waiting;
    this.#waiting = new Map(reports.map((report) => [report.name, report]));
    this.#notify([...new Set([...before.keys(), ...this.#waiting.keys()])]);
  }

  /** Reports namespaces with invalid parameters of a revision; undefined: there are none. */
  parametersTried(name: string, refused: RefusedReport | undefined): void {
    if (!this.#refused.has(name) || this.#refused.get(name) !== refused) {
      this.#refused.set(name, refused);
      this.#notify([name]);
    }
  }

  /** Counts what a policy in monitor mode would have rejected. */
  record(verdict: MonitoredVerdict): void {
    this.#monitored.record(verdict);
  }

  /** Reports all counts now, before the process ends. */
  flush(): void {
    this.#monitored.flush();
  }

  *served(): Iterable<ServedRevision> {
    for (const entry of this.#entries()) {
      const serves = servingOf(entry);
      if (serves?.revision !== undefined && entry.isOnAllWorkers && entry.activationFailure === undefined) {
        yield { policy: entry.id, revision: serves.revision.number, digest: serves.version };
      }
    }
  }

  /** Reports revisions that are not served, because they are not what their names say. */
  revisionsMismatched(mismatched: readonly Deviation[]): void {
    this.#mismatched = mismatched;
    this.#notify([]);
  }

  *deviations(): Iterable<Deviation> {
    for (const mismatched of this.#mismatched) {
      yield mismatched;
    }
    for (const entry of this.#entries()) {
      yield* deviationsOf(entry);
    }
  }

  subscribe(listener: (names: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Reports changes of policies.
   * @param removed removed policies
   * @param isSynced whether the cluster has been read
   */
  update(entries: Iterable<RegistryEntry>, removed: readonly RegistryEntry[], isSynced: boolean): void {
    const names = removed.flatMap(({ id }) => this.#forget(id, () => true));
    for (const { id } of removed) {
      this.#monitored.forget(id);
    }
    for (const entry of entries) {
      this.#monitored.serves(entry.id, countedRevision(entry));
      const reports = reportsOf(entry);
      names.push(...this.#forget(entry.id, (name) => !reports.has(name)));
      this.#names.set(entry.id, [...reports.keys()]);
      for (const [name, report] of reports) {
        if (!isDeepStrictEqual(report, this.#reports.get(name))) {
          this.#reports.set(name, report);
          names.push(name);
        }
      }
    }
    const isNews = isSynced && !this.#isSynced;
    this.#isSynced = isSynced;
    if (isNews || names.length > 0) {
      this.#notify(names);
    }
  }

  #notify(names: readonly string[]): void {
    for (const listener of this.#listeners) {
      listener(names);
    }
  }

  #current(report: RevisionReport): RevisionReport {
    const monitored = this.#monitored.report(report.policy, report.name);
    const areParametersTried = report.state === 'Serving' && this.#refused.has(report.name);
    const refused = areParametersTried ? this.#refused.get(report.name) : undefined;
    const isReady = this.#isReady();
    return monitored === undefined && !areParametersTried && isReady
      ? report
      : {
          ...report,
          ...(isReady ? {} : { answers: 'NotReady' }),
          ...(areParametersTried && { areParametersTried }),
          ...(refused && { refused }),
          ...(monitored && { monitored }),
        };
  }

  /** Removes reports of a policy. Returns their names. */
  #forget(id: string, isGone: (name: string) => boolean): string[] {
    const gone = (this.#names.get(id) ?? []).filter(isGone);
    for (const name of gone) {
      this.#reports.delete(name);
      this.#refused.delete(name);
    }
    this.#names.delete(id);
    return gone;
  }
}

/** The revision that all workers serve, so that all verdicts are its own. */
function countedRevision(entry: RegistryEntry): { readonly name: string; readonly isMonitored: boolean } | undefined {
  const serves = entry.isOnAllWorkers ? servingOf(entry) : undefined;
  return serves?.revision === undefined
    ? undefined
    : { name: serves.revision.name, isMonitored: serves.definition.mode === 'monitor' };
}

/** The reports of a policy's revisions, by name. */
function reportsOf(entry: RegistryEntry): Map<string, RevisionReport> {
  const serves = entry.isOnAllWorkers ? servingOf(entry) : entry.previous;
  const reports = new Map<string, RevisionReport>();
  const report = (revision: RevisionName | undefined, rest: ReportedState): void => {
    if (revision !== undefined) {
      const { name, uid, number } = revision;
      reports.set(name, { name, uid, policy: entry.id, revision: number, ...rest, ...answersOf(entry, revision) });
    }
  };
  const { published } = entry;
  if (published !== undefined && published.kind !== 'serving') {
    // Its failurePolicy answers, also when it is not to be loaded.
    report(published.of, { state: 'Loading' });
  }
  if (serves !== undefined) {
    report(serves.revision, servingState(serves));
  }
  for (const slot of entry.slots.values()) {
    if (slot.loaded === undefined || slot.loaded !== entry.previous) {
      report(slot.revision, stateOf(slot, entry));
    }
  }
  return reports;
}

type ReportedState = Omit<RevisionReport, 'name' | 'uid' | 'policy' | 'revision' | 'answers'>;

/** What the replica answers by a revision; nothing is said while workers change, or cannot activate it. */
function answersOf(
  { published, previous, isOnAllWorkers, activationFailure }: RegistryEntry,
  { name }: RevisionName,
): Pick<RevisionReport, 'answers'> {
  if (published === undefined) {
    return { answers: 'Nothing' };
  }
  const isNow = (published.kind === 'serving' ? published.loaded.revision : published.of)?.name === name;
  if (!isNow) {
    return { answers: !isOnAllWorkers && previous?.revision?.name === name ? 'Verdict' : 'Nothing' };
  }
  if (!isOnAllWorkers || activationFailure !== undefined) {
    return {};
  }
  const { match } = published;
  const byFailurePolicy = published.kind === 'serving' ? 'Verdict' : published.failurePolicy;
  return { answers: match === undefined ? 'Nothing' : byFailurePolicy };
}

function servingState({ order, isUncached }: LoadedRevision): ReportedState {
  return { state: 'Serving', ...(order > 0 ? { order } : {}), ...(isUncached ? { isUncached } : {}) };
}

function stateOf({ loaded, failure, nextRetry }: Slot, entry: RegistryEntry): ReportedState {
  const isPublished = loaded !== undefined && servingOf(entry) === loaded;
  if (isPublished && entry.activationFailure !== undefined) {
    const { message, nextRetry: next } = entry.activationFailure;
    return { state: 'Failed', reason: 'ActivationFailed', message, nextRetry: next.toISOString() };
  }
  if (loaded !== undefined) {
    return isPublished && entry.isOnAllWorkers
      ? servingState(loaded)
      : { state: 'Staged', ...(loaded.isUncached ? { isUncached: true } : {}) };
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

/** Deviations of a policy from the desired state. */
function deviationsOf(entry: RegistryEntry): Deviation[] {
  const target = targetOf(entry);
  const failed = [...entry.slots.values()].filter((slot) => slot !== target && slot.failure !== undefined);
  return [...(target === undefined ? [] : [target]), ...failed].flatMap((slot) => deviationOf(entry, slot) ?? []);
}

function deviationOf(entry: RegistryEntry, slot: Slot): Deviation | undefined {
  const of = { policy: entry.id, revision: slot.revision?.number ?? 0 };
  const serves = servingOf(entry);
  const isPublished = slot.loaded !== undefined && serves === slot.loaded;
  if (isPublished && entry.activationFailure !== undefined) {
    return { ...of, state: 'Failed', reason: 'ActivationFailed', message: entry.activationFailure.message };
  }
  if (isPublished && entry.isOnAllWorkers) {
    return undefined;
  }
  if (slot.failure !== undefined) {
    return { ...of, state: 'Failed', ...slot.failure };
  }
  return { ...of, state: serves === undefined || isPublished ? 'Loading' : 'Stale', reason: 'Loading' };
}
