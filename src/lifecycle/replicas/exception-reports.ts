import type { ExceptionUse } from '../../control/index.ts';
import { MAX_MONITORED_REPORTS, MAX_REPLICA_PROCESSES, MAX_REPLICA_REPORTS } from './monitored-reports.ts';

/** The uses of an exception on a replica. */
export interface ReplicaUse extends ExceptionUse {
  /** `metadata.name` of the PolicyServerReplica. */
  readonly replica: string;
}

/**
 * Uses of exceptions, as replicas last reported them, until the status of the exceptions contains them. Also from replicas that are gone
 * since. Further ones wait on replicas.
 */
export class ExceptionReports {
  /** By `metadata.uid` of the exception, in the order in which processes began to report. */
  readonly #uses = new Map<string, readonly ReplicaUse[]>();
  /** Number of uses by replica. */
  readonly #sizes = new Map<string, number>();
  readonly #listeners = new Set<(uids: ReadonlySet<string>) => void>();
  #size = 0;

  of(uid: string): readonly ReplicaUse[] {
    return this.#uses.get(uid) ?? [];
  }

  /** Number of exceptions with uses that wait. */
  get waiting(): number {
    return this.#uses.size;
  }

  /** Stores what a replica reports. */
  receive(replica: string, uses: readonly ExceptionUse[]): void {
    this.#tell(new Set(uses.filter((use) => this.#set({ ...use, replica })).map(({ uid }) => uid)));
  }

  /** A replica reports no more: what it reported is nowhere else. */
  gone(replica: string): void {
    const left = this.#uses.entries().filter(([, uses]) => uses.some((use) => use.replica === replica));
    this.#tell(new Set(left.map(([uid]) => uid)));
  }

  /** Drops uses that the status contains, or that are obsolete; newer ones stay. */
  drop(uses: readonly ReplicaUse[]): void {
    for (const use of uses) {
      const kept = this.of(use.uid).filter((one) => one !== use);
      this.#resize(use.replica, kept.length - this.of(use.uid).length);
      if (kept.length === 0) {
        this.#uses.delete(use.uid);
      } else {
        this.#uses.set(use.uid, kept);
      }
    }
  }

  clear(): void {
    this.#uses.clear();
    this.#sizes.clear();
    this.#size = 0;
  }

  /** Calls `listener` with the exceptions that have new uses, or the last ones of a replica. Returns a function that unsubscribes. */
  subscribe(listener: (uids: ReadonlySet<string>) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(uids: ReadonlySet<string>): void {
    if (uids.size > 0) {
      this.#listeners.forEach((listener) => listener(uids));
    }
  }

  #set(use: ReplicaUse): boolean {
    const all = this.of(use.uid);
    const index = all.findIndex(({ replica, since }) => replica === use.replica && since === use.since);
    if (index === -1 ? !this.#hasRoom(use.replica, all) : all[index]?.count === use.count) {
      return false;
    }
    this.#uses.set(use.uid, index === -1 ? [...all, use] : all.with(index, use));
    this.#resize(use.replica, index === -1 ? 1 : 0);
    return true;
  }

  #hasRoom(replica: string, all: readonly ReplicaUse[]): boolean {
    return (
      this.#size < MAX_MONITORED_REPORTS &&
      (this.#sizes.get(replica) ?? 0) < MAX_REPLICA_REPORTS &&
      all.filter((one) => one.replica === replica).length < MAX_REPLICA_PROCESSES
    );
  }

  #resize(replica: string, by: number): void {
    this.#size += by;
    const size = (this.#sizes.get(replica) ?? 0) + by;
    if (size === 0) {
      this.#sizes.delete(replica);
    } else {
      this.#sizes.set(replica, size);
    }
  }
}
