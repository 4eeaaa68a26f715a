// The interface to replicas for the rest of the lifecycle.
import type { PrevalidationRequest, PrevalidationResult, RevisionReport } from '../../control/index.ts';
import type { MonitoredReports } from './monitored-reports.ts';

/** A replica in its current state. */
export interface KnownReplica {
  /** `metadata.name` of its PolicyServerReplica. */
  readonly name: string;
  readonly policyServer: string;
  readonly state: 'connecting' | 'connected' | 'lost';
  /** Whether it is lost, and its pod is not ready: API servers send it no requests. */
  readonly isUnready?: boolean;
  /** The node of its pod, if it says so. */
  readonly nodeName?: string | undefined;
  /** Whether it is connected, and has reported uses of exceptions, maybe none. */
  readonly reportsUses?: boolean;
  /** See {@link ClockOffset}. */
  readonly clockOffsetMs?: number | undefined;
  /** Its reports on the revisions of a policy, by the policy's id; empty unless it is connected. */
  reports(policy: string): readonly RevisionReport[];
}

/** A change: of some policies on a server, or of all (a replica connected, was lost or was removed). */
export interface ReplicaChange {
  readonly policyServer: string;
  readonly policies: readonly string[] | 'all';
}

export interface ReplicaDirectory {
  /** The replicas of a PolicyServer; undefined until each has reported or is lost. */
  replicas(policyServer: string): readonly KnownReplica[] | undefined;
  /** What policies in monitor mode would have rejected, see {@link MonitoredReports}. */
  readonly monitored: Pick<MonitoredReports, 'of' | 'drop'>;
  /** Calls `listener` for each change. Returns a function that unsubscribes. */
  subscribe(listener: (change: ReplicaChange) => void): () => void;
  /**
   * Pre-validates a policy on one connected replica; on another one if that fails.
   * @throws Waiting when no replica is available
   */
  prevalidate(policyServer: string, request: PrevalidationRequest, signal: AbortSignal): Promise<PrevalidationResult>;
}
