// What a replica has to say of its revisions, as it is now.
import { isDeepStrictEqual } from 'node:util';
import { reportsOf, type RevisionEntry, servingOf, type Slot, targetOf } from './revision-entry.ts';
import type { RevisionReport } from '../../control/index.ts';
import type { Deviation, ReplicaView, ServedRevision } from './replica-view.ts';

/** The side of the registry that others look at. */
export class RevisionView implements ReplicaView {
  readonly #entries: ReadonlyMap<string, RevisionEntry>;
  readonly #reports = new Map<string, RevisionReport>();
  readonly #listeners = new Set<(names: readonly string[]) => void>();
  #isSynced = false;

  /** @param entries of the registry, by the id of the policy */
  constructor(entries: ReadonlyMap<string, RevisionEntry>) {
    this.#entries = entries;
  }

  get isSynced(): boolean {
    return this.#isSynced;
  }

  reports(): Iterable<RevisionReport> {
    return this.#reports.values();
  }

  report(name: string): RevisionReport | undefined {
    return this.#reports.get(name);
  }

  *served(): Iterable<ServedRevision> {
    for (const entry of this.#entries.values()) {
      const serves = servingOf(entry);
      if (serves !== undefined && entry.isEverywhere && entry.activationFailure === undefined) {
        yield { policy: entry.id, revision: serves.revision.number, digest: serves.version };
      }
    }
  }

  *deviations(): Iterable<Deviation> {
    for (const entry of this.#entries.values()) {
      yield* deviationsOf(entry);
    }
  }

  subscribe(listener: (names: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Looks again at some policies, and tells what there is to say otherwise than before.
   * @param removed policies that are gone
   * @param isSynced whether the cluster has been read
   */
  update(entries: Iterable<RevisionEntry>, removed: readonly RevisionEntry[], isSynced: boolean): void {
    const names = removed.flatMap((entry) => this.#forget([...entry.reports.keys()]));
    for (const entry of entries) {
      const before = entry.reports;
      entry.reports = reportsOf(entry);
      names.push(...this.#forget([...before.keys()].filter((name) => !entry.reports.has(name))));
      for (const [name, report] of entry.reports) {
        if (!isDeepStrictEqual(report, before.get(name))) {
          this.#reports.set(name, report);
          names.push(name);
        }
      }
    }
    const isNews = isSynced && !this.#isSynced;
    this.#isSynced = isSynced;
    if (isNews || names.length > 0) {
      for (const listener of this.#listeners) {
        listener(names);
      }
    }
  }

  #forget(names: readonly string[]): readonly string[] {
    for (const name of names) {
      this.#reports.delete(name);
    }
    return names;
  }
}

/** Where a replica does not have a policy as the cluster wants it. */
function deviationsOf(entry: RevisionEntry): Deviation[] {
  const target = targetOf(entry);
  const failed = [...entry.slots.values()].filter((slot) => slot !== target && slot.failure !== undefined);
  return [...(target === undefined ? [] : [target]), ...failed].flatMap((slot) => deviationOf(entry, slot) ?? []);
}

function deviationOf(entry: RevisionEntry, slot: Slot): Deviation | undefined {
  const of = { policy: entry.id, revision: slot.revision.number };
  const serves = servingOf(entry);
  const isShown = slot.loaded !== undefined && serves === slot.loaded;
  if (isShown && entry.activationFailure !== undefined) {
    return { ...of, state: 'Failed', reason: 'ActivationFailed', message: entry.activationFailure.message };
  }
  if (isShown && entry.isEverywhere) {
    return undefined;
  }
  if (slot.failure !== undefined) {
    return { ...of, state: 'Failed', ...slot.failure };
  }
  return { ...of, state: serves === undefined || isShown ? 'Loading' : 'Stale', reason: 'Loading' };
}
