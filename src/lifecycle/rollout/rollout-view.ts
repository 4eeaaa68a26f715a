// What is known of one policy at one moment, and what there is to do about it. Plain data: the planner is a pure function
// of a view, so that all that can happen can be tried.
import type { AdmissionPolicySpec, PolicyStatus, RevisionState } from '../../resources/index.ts';
import type { PinnedModule, ReplicaRevisionState } from '../../control/index.ts';

/** What becomes of a rollout when not every replica has the revision at its deadline. */
export type RolloutStrategy =
  /** Those that have it serve it, if any does; the others are told of as degraded. */
  | 'Available'
  /** It waits on, and the policy is told of as degraded. */
  | 'AllReplicas';

/** What becomes of a policy whose newest revision failed. */
export type DegradedBehaviour =
  /** The last good revision serves on. */
  | 'Serve'
  /** Requests are answered by the failurePolicy, as if nothing had ever served. */
  | 'Reject';

/** How policies are rolled out: flags of the controller, overridden by annotations of PolicyServers, then of policies. */
export interface RolloutSettings {
  readonly strategy: RolloutStrategy;
  /** Milliseconds. */
  readonly progressDeadlineMs: number;
  /** Revisions that do not serve, to be kept. */
  readonly historyLimit: number;
  readonly degraded: DegradedBehaviour;
}

export const DEFAULT_ROLLOUT_SETTINGS: RolloutSettings = {
  strategy: 'Available',
  // Long against fetching a module from a slow registry (some MB), short against somebody who waits for a policy.
  progressDeadlineMs: 60_000,
  historyLimit: 10,
  degraded: 'Serve',
};

/** A PolicyRevision of the policy. */
export interface RevisionFacts {
  readonly number: number;
  /** Undefined while its status was never written: as Candidate. */
  readonly state: RevisionState;
  /** Why it is not further, if it could not be. Empty while all goes well. */
  readonly reason: string;
  readonly message: string;
  readonly modules: readonly PinnedModule[];
  readonly attempts: number;
  /** Milliseconds since 1970; when a Candidate that failed for a reason that may pass is tried again. */
  readonly nextRetry: number | undefined;
  /** Since when it is in its state. Milliseconds since 1970. */
  readonly stateSince: number;
  /** See `status.order` of PolicyRevision; 0 when it never served. */
  readonly order: number;
  readonly snapshot: AdmissionPolicySpec;
  /** Whether API servers ask about it in a webhook of its own. */
  readonly ownWebhook: boolean;
}

/** A replica of the policy's server, and what it says of the revisions of the policy. */
export interface ReplicaFacts {
  readonly name: string;
  /** `connecting`: it is new, and has not had time to say anything. `lost`: it does not answer. */
  readonly state: 'connecting' | 'connected' | 'lost';
  /** By number. */
  readonly revisions: ReadonlyMap<number, ReplicaRevisionFacts>;
}

export interface ReplicaRevisionFacts {
  readonly state: ReplicaRevisionState;
  /** Where it serves: the revision's `order` as the replica has read it. Absent when it does not say. */
  readonly order?: number | undefined;
  readonly reason: string;
  readonly message: string;
  /** Milliseconds since 1970. */
  readonly nextRetry: number | undefined;
}

/** Everything that a decision about one policy is made from. */
export interface RolloutView {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly generation: number;
  readonly spec: AdmissionPolicySpec;
  /** Whether the policy asks for a webhook of its own. */
  readonly ownWebhook: boolean;
  /** The revision that the policy is pinned to; undefined without a pin. */
  readonly pin: number | undefined;
  readonly settings: RolloutSettings;
  /** By number, ascending; only those of this very policy (its uid). */
  readonly revisions: readonly RevisionFacts[];
  /** Undefined: not known yet, because the controller has just begun. Then nothing is served or told anew. */
  readonly replicas: readonly ReplicaFacts[] | undefined;
  /** Whether there is a PolicyServer of that name. */
  readonly hasPolicyServer: boolean;
  /**
   * Whether the API server asks about the policy at all, if only as it was declared before. That it asks about the same
   * requests for another policy's sake, or in time for what never served, does not count.
   */
  readonly isAsked: boolean;
  /** What users read in the policy's status now. */
  readonly phase: PolicyStatus['phase'];
}

/** One thing to do. After one that wrote anything the world is looked at anew. */
export type RolloutStep =
  /** Make a revision of the spec. */
  | {
      readonly type: 'create';
      readonly revision: number;
      readonly rollbackOf: number | undefined;
      readonly ownWebhook: boolean;
    }
  /** Ask a replica whether it could serve; then write what came of it, see {@link afterPrevalidation}. */
  | { readonly type: 'prevalidate'; readonly revision: number }
  /** Write the status of a revision: its modules and attempts stay, `nextRetry` goes. */
  | {
      readonly type: 'transition';
      readonly revision: number;
      readonly to: RevisionState;
      readonly reason: string;
      readonly message: string;
      /** The new `order`, where it is to serve. */
      readonly order?: number;
    }
  /** Find out whether the API server would ask about requests of this revision, and have it do so in time. */
  | { readonly type: 'foresee'; readonly revision: number }
  /** Have the API server ask about requests of all of these revisions: before one of them serves. */
  | { readonly type: 'widen'; readonly revisions: readonly number[] }
  /** Have the API server ask exactly as this revision says; undefined: nothing could serve, as the spec says. */
  | { readonly type: 'enforce'; readonly revision: number | undefined }
  /** Forget revisions that nobody needs any more. */
  | { readonly type: 'delete'; readonly revisions: readonly number[] };

/** What there is to do now, in this order, and when to look again although nothing changed. */
export interface RolloutPlan {
  readonly steps: readonly RolloutStep[];
  /** Milliseconds since 1970. */
  readonly wakeAt: number | undefined;
}
