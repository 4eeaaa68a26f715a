// What a replica knows of itself, for those who tell others.
import type { RevisionReport } from './replica-protocol.ts';

/** What a replica has to say of revisions. */
export interface ReportSource {
  /** Whether the revisions of the cluster have been read. */
  readonly isSynced: boolean;
  /** All that there is to say, in no order. */
  reports(): Iterable<RevisionReport>;
  /** What there is to say of the PolicyRevision of that name; undefined when the replica has nothing of it. */
  report(name: string): RevisionReport | undefined;
  /**
   * Tells the names of PolicyRevisions of which there is something else to say than before, or nothing any more; none when
   * only {@link isSynced} changed. Ends with the function that it returns.
   */
  subscribe(listener: (names: readonly string[]) => void): () => void;
}

/** A revision that answers requests. */
export interface ServedRevision {
  /** The id of the policy. */
  readonly policy: string;
  readonly revision: number;
  /** Hash of what it is: its definition and its modules. Equal on replicas that answer alike. */
  readonly digest: string;
}

/** One revision that a replica does not have as it should; see `status.deviations` of PolicyServerReplica. */
export interface Deviation {
  /** The id of the policy. */
  readonly policy: string;
  /** The number of the revision that is to serve. */
  readonly revision: number;
  /** `Missing`: nothing of the policy serves. `Stale`: an older revision does. */
  readonly state: 'Loading' | 'Missing' | 'Failed' | 'Stale';
  /** A documented constant. */
  readonly reason: string;
  readonly message?: string;
}

/** All that a replica tells of itself. */
export interface ReplicaView extends ReportSource {
  /** In no order. */
  served(): Iterable<ServedRevision>;
  /** In no order. */
  deviations(): Iterable<Deviation>;
}
