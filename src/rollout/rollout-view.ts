// The input and output of the planner. Plain data, so that tests can enumerate situations.
import type { PolicyPhase, RevisionState } from '../resources/index.ts';
import type { RefusedReport, ReplicaAnswers, ReplicaRevisionState, RevisionContent } from '../control/index.ts';

/** What happens when not every replica has loaded the revision within the progress deadline. */
export type RolloutStrategy =
  /** Replicas that have loaded it, if any, serve it; the policy is degraded on the others. */
  | 'Available'
  /** The rollout waits for all; the policy is degraded. */
  | 'AllReplicas';

/** What happens when the newest revision of a policy failed. */
export type DegradedBehaviour =
  /** The last good revision serves. */
  | 'Serve'
  /** The failurePolicy answers. */
  | 'Reject'
  /** The policy is not enforced until a revision serves again. */
  | 'Ignore';

/** What happens while no revision of a policy has ever served, and the newest one failed. */
export type UnservedBehaviour =
  /** The policy is not enforced. */
  | 'Ignore'
  /** The failurePolicy answers. */
  | 'Reject';

/** How policies are rolled out: flags of the controller, overridden by annotations of PolicyServers, then of policies. */
export interface RolloutSettings {
  readonly strategy: RolloutStrategy;
  /** Milliseconds. */
  readonly progressDeadlineMs: number;
  /** Number of past revisions to keep. */
  readonly historyLimit: number;
  readonly degraded: DegradedBehaviour;
  readonly unserved: UnservedBehaviour;
  /** Why the policy is not enforced until the annotation is removed; undefined: it is. */
  readonly disarmed?: string;
}

export const DEFAULT_ROLLOUT_SETTINGS: RolloutSettings = {
  strategy: 'Available',
  // Long enough to fetch a module from a slow registry (some MB), short enough for a user who waits.
  progressDeadlineMs: 60_000,
  historyLimit: 10,
  degraded: 'Serve',
  unserved: 'Ignore',
};

/** A PolicyRevision of the policy. `Spec` is that of the policy's kind. */
export interface RevisionFacts<Spec = unknown> extends RevisionContent {
  readonly number: number;
  /** The name of the policy. */
  readonly policy: string;
  /** A revision without a status is a Candidate. */
  readonly state: RevisionState;
  /** Why its state is not the next one; empty without a failure. */
  readonly reason: string;
  readonly message: string;
  /** Why it may reject requests, from its pre-validation. */
  readonly warnings: readonly string[];
  readonly attempts: number;
  /** When a transient failure of a Candidate is retried, or the earliest time for one of parameters. Milliseconds since 1970. */
  readonly nextRetry: number | undefined;
  /** The fingerprint of the parameters for which it failed. */
  readonly triedParameters: string | undefined;
  /** Start of its state. Milliseconds since 1970. */
  readonly stateSince: number;
  /** `status.order` of the PolicyRevision; 0 if it never served. */
  readonly order: number;
  /** When it last began to serve. Milliseconds since 1970. */
  readonly servingSince: number | undefined;
  readonly snapshot: Spec;
  /** Whether it has a webhook of its own. */
  readonly ownWebhook: boolean;
  /** The annotation `refresh` for which its modules were resolved again, and had not changed. */
  readonly refreshed: string | undefined;
  /** Whether replicas answer by the failurePolicy while it is the newest revision, failed, and none serves. */
  readonly isEnforced: boolean;
}

/** A replica of the policy's server, with its reports on the revisions of the policy. */
export interface ReplicaFacts {
  readonly name: string;
  /** `connecting`: new, without a report so far. `lost`: not connected. */
  readonly state: 'connecting' | 'connected' | 'lost';
  /** Whether it is lost, and its pod is not ready: API servers send it no requests. */
  readonly isUnready?: boolean;
  /** The node of its pod, if it says so. */
  readonly nodeName?: string | undefined;
  /** By number. */
  readonly revisions: ReadonlyMap<number, ReplicaRevisionFacts>;
}

export interface ReplicaRevisionFacts {
  readonly state: ReplicaRevisionState;
  /** What the replica answers by this revision now; absent while its workers change to it, or cannot activate it. */
  readonly answers?: ReplicaAnswers | undefined;
  /** `order` of a serving revision, as the replica has read it. */
  readonly order?: number | undefined;
  readonly reason: string;
  readonly message: string;
  /** Milliseconds since 1970. */
  readonly nextRetry: number | undefined;
  /** Whether a module of it could not be written to the disk of the replica. */
  readonly isUncached?: boolean | undefined;
  /** The fingerprint of the parameters now, of a revision that failed for them. */
  readonly parameters?: string | undefined;
  /** Whether its parameters were tried, while it serves. Default: false. */
  readonly areParametersTried?: boolean;
  /** Namespaces with invalid parameters, while it serves. Absent: none are known. */
  readonly refused?: RefusedReport | undefined;
}

/** The input of a plan. `Spec` is that of the policy's kind. */
export interface RolloutView<Spec = unknown> {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly generation: number;
  readonly spec: Spec;
  /** Whether the policy requests a webhook of its own. */
  readonly ownWebhook: boolean;
  /** The annotation `refresh`: its modules should be resolved again when the value changes. */
  readonly refresh: string | undefined;
  /** The pinned revision, if any. */
  readonly pin: number | undefined;
  readonly settings: RolloutSettings;
  /** Revisions of this policy (by its uid), in ascending order of their number. */
  readonly revisions: readonly RevisionFacts<Spec>[];
  /**
   * Undefined until the replicas are known, after a start of the controller. Until then no revision starts to serve.
   */
  readonly replicas: readonly ReplicaFacts[] | undefined;
  /** The published phase. */
  readonly phase: PolicyPhase | undefined;
  /** Those of the policy's kind. */
  readonly rules: RolloutRules<Spec>;
}

/** What the planner needs to know of a kind of policies. */
export interface RolloutRules<Spec> {
  /** Whether a spec differs at most in how the policy is enforced from a revision, whose modules are known. */
  evaluates(spec: Spec, base: RevisionFacts<Spec>): boolean;
  /** Whether requests are admitted while nothing can be evaluated. */
  admitsFailures(spec: Spec): boolean;
}

/** A step of a plan. After a step that wrote something, the policy is planned again. */
export type RolloutStep =
  /** Create a revision of the spec. */
  | {
      readonly type: 'create';
      readonly revision: number;
      readonly rollbackOf: number | undefined;
      readonly ownWebhook: boolean;
      readonly refresh: string | undefined;
    }
  /** Resolve the modules of a revision again: if they have changed, create a revision; else write that they have not. */
  | { readonly type: 'refresh'; readonly revision: number; readonly refresh: string }
  /** Pre-validate a revision on one replica, and write the result, see {@link afterPrevalidation}. */
  | { readonly type: 'prevalidate'; readonly revision: number }
  /** Write the modules and the validation of another revision, see {@link evaluatesAs}. */
  | { readonly type: 'inherit'; readonly revision: number; readonly from: number }
  /** Write the status of a revision. Its modules and attempts stay, `nextRetry` is removed. */
  | {
      readonly type: 'transition';
      readonly revision: number;
      readonly to: RevisionState;
      readonly reason: string;
      readonly message: string;
      /** The new `order`, for the transition to Serving. */
      readonly order?: number;
    }
  /** Check by a dry run that the API server accepts the revision's webhook configuration, and prepare its coverage. */
  | { readonly type: 'dryRun'; readonly revision: number }
  /** Extend the coverage to all of these revisions, before one of them serves. */
  | { readonly type: 'widen'; readonly revisions: readonly number[] }
  /** Set the coverage to this revision; undefined: to the spec, because nothing has ever served. */
  | { readonly type: 'enforce'; readonly revision: number | undefined }
  /** Publish whether replicas answer by the failurePolicy while this revision is the newest, failed, and none serves. */
  | { readonly type: 'setEnforced'; readonly revision: number; readonly isEnforced: boolean }
  /** Let webhooks cover no request of the policy. */
  | { readonly type: 'uncover' }
  /** Delete revisions. */
  | { readonly type: 'delete'; readonly revisions: readonly number[] };

/** Steps in their order, and when to plan again without a change. */
export interface RolloutPlan {
  readonly steps: readonly RolloutStep[];
  /** Milliseconds since 1970. */
  readonly wakeAt: number | undefined;
}
