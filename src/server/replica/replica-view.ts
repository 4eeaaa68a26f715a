import type { ReportSource } from '../../control/index.ts';

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
