// What the rest of the lifecycle sees of replicas, whoever talks to them.
import type { PrevalidationRequest, PrevalidationResult, RevisionReport } from '../../control/index.ts';

/** A replica as it is known now. */
export interface KnownReplica {
  /** `metadata.name` of its PolicyServerReplica. */
  readonly name: string;
  readonly policyServer: string;
  readonly state: 'connecting' | 'connected' | 'lost';
  /** What it says of the revisions of a policy, by the policy's id; empty unless it is connected. */
  reports(policy: string): readonly RevisionReport[];
}

/** What changed: some policies on a server, or all of them (a replica came, went, or was lost). */
export interface ReplicaChange {
  readonly policyServer: string;
  readonly policies: readonly string[] | 'all';
}

export interface ReplicaDirectory {
  /** The replicas of a PolicyServer; undefined while those that there are have not been heard once. */
  replicas(policyServer: string): readonly KnownReplica[] | undefined;
  /** Tells of changes until the function that it returns is called. */
  subscribe(listener: (change: ReplicaChange) => void): () => void;
  /**
   * Has one replica try a policy: one that is connected, another one when that fails.
   * @throws Waiting when no replica can be asked now
   */
  prevalidate(policyServer: string, request: PrevalidationRequest, signal: AbortSignal): Promise<PrevalidationResult>;
}
