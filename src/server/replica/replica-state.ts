import type { ReportSource } from '../../control/index.ts';

/** A serving revision. */
export interface ServedRevision {
  /** The id of the policy. */
  readonly policy: string;
  readonly revision: number;
  /** Hash of its definition and modules: equal on replicas that serve the same. */
  readonly digest: string;
}

/** A revision whose state differs from the desired one; see `status.deviations` of PolicyServerReplica. */
export interface Deviation {
  /** The id of the policy. */
  readonly policy: string;
  /** Number of the revision that should serve. */
  readonly revision: number;
  /** `Missing`: no revision of the policy serves. `Stale`: an older revision serves. */
  readonly state: 'Loading' | 'Missing' | 'Failed' | 'Stale';
  /** A documented constant. */
  readonly reason: string;
  readonly message?: string;
}

/** The state of a replica. */
export interface ReplicaState extends ReportSource {
  /** In no particular order. */
  served(): Iterable<ServedRevision>;
  /** In no particular order. */
  deviations(): Iterable<Deviation>;
}
