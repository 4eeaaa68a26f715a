import type { MonitoredReport, RevisionReport } from '../../control/index.ts';

/** Most counts that wait to be written: those of ten thousand policies from a few replicas. Further ones wait on replicas. */
export const MAX_MONITORED_REPORTS = 50_000;
/**
 * Most counts of one replica, so that one that reports on policies which do not exist leaves room for others: those of ten thousand
 * policies, before and after a restart.
 */
export const MAX_REPLICA_REPORTS = 20_000;
/**
 * Most processes of one replica that count for a policy at a time: more than a crash loop starts between two writes of the status,
 * which lists them.
 */
export const MAX_REPLICA_PROCESSES = 10;
/** Most text of the requests of all counts. Beyond it, counts are kept without requests. Characters. */
export const MAX_MONITORED_TEXT = 32 * 1024 ** 2;

/** The count of a revision on a replica. */
export interface ReplicaCount extends MonitoredReport, Pick<RevisionReport, 'name' | 'uid' | 'policy' | 'revision'> {
  /** `metadata.name` of the PolicyServerReplica. */
  readonly replica: string;
  readonly policyServer: string;
}

/**
 * What policies in monitor mode would have rejected, as replicas last reported it, until the status of the policies
 * contains it. Also from replicas that are gone since.
 */
export class MonitoredReports {
  /** By policy id, then by process: a replica that restarts begins a new count. */
  readonly #counts = new Map<string, Map<string, ReplicaCount>>();
  /** Number of counts by replica. */
  readonly #sizes = new Map<string, number>();
  #size = 0;
  #text = 0;

  of(policy: string): readonly ReplicaCount[] {
    return [...(this.#counts.get(policy)?.values() ?? [])];
  }

  /** Stores the counts of a report. Returns the policies that have new ones. */
  receive(
    { name: replica, policyServer }: { readonly name: string; readonly policyServer: string },
    reports: readonly RevisionReport[],
  ): ReadonlySet<string> {
    const changed = new Set<string>();
    for (const { name, uid, policy, revision, monitored } of reports) {
      if (monitored !== undefined && this.#set({ ...monitored, name, uid, policy, revision, replica, policyServer })) {
        changed.add(policy);
      }
    }
    return changed;
  }

  /** Drops counts that the status contains, or that are obsolete; newer ones stay. */
  drop(counts: readonly ReplicaCount[]): void {
    for (const count of counts) {
      if (this.#counts.get(count.policy)?.get(processOf(count)) === count) {
        this.#delete(count);
      }
    }
  }

  #set(count: ReplicaCount): boolean {
    const ofPolicy = this.#counts.get(count.policy) ?? new Map<string, ReplicaCount>();
    const before = ofPolicy.get(processOf(count));
    if (before?.count === count.count && before.uid === count.uid) {
      return false;
    }
    if (before === undefined && !this.#hasRoom(count, ofPolicy)) {
      return false;
    }
    if (before !== undefined) {
      this.#delete(before);
    }
    const text = textOf(count);
    const stored = this.#text + text > MAX_MONITORED_TEXT ? { ...count, last: [] } : count;
    this.#counts.set(count.policy, ofPolicy);
    ofPolicy.set(processOf(count), stored);
    this.#resize(count, 1);
    this.#text += textOf(stored);
    return true;
  }

  #hasRoom({ replica }: ReplicaCount, ofPolicy: ReadonlyMap<string, ReplicaCount>): boolean {
    const processes = ofPolicy.values().filter((one) => one.replica === replica);
    return (
      this.#size < MAX_MONITORED_REPORTS &&
      (this.#sizes.get(replica) ?? 0) < MAX_REPLICA_REPORTS &&
      [...processes].length < MAX_REPLICA_PROCESSES
    );
  }

  #delete(count: ReplicaCount): void {
    const ofPolicy = this.#counts.get(count.policy);
    ofPolicy?.delete(processOf(count));
    if (ofPolicy?.size === 0) {
      this.#counts.delete(count.policy);
    }
    this.#resize(count, -1);
    this.#text -= textOf(count);
  }

  #resize({ replica }: ReplicaCount, by: number): void {
    this.#size += by;
    const size = (this.#sizes.get(replica) ?? 0) + by;
    if (size === 0) {
      this.#sizes.delete(replica);
    } else {
      this.#sizes.set(replica, size);
    }
  }
}

function processOf({ replica, since }: ReplicaCount): string {
  return `${replica} ${since}`;
}

function textOf({ last }: ReplicaCount): number {
  return last.reduce((sum, request) => sum + Object.values(request).join('').length, 0);
}
