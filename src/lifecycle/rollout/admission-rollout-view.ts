// What is known of one admission policy, to plan its rollout and to write its status.
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import type { RevisionFacts, RolloutView } from '../../rollout/index.ts';
import type { ReplicaCount } from '../replicas/monitored-reports.ts';
import type { TypeCheckReport } from '../type-checks/type-check-report.ts';
import type { WebhookState } from './webhook-state.ts';

export type AdmissionRevision = RevisionFacts<AdmissionPolicySpec>;

/** Copies of the modules of the revision that serves, or did last. */
export interface CopyFacts {
  /** Controllers that have all of its modules. */
  readonly controllers: number;
  /** The nodes of these controllers; undefined for one that does not say it. */
  readonly nodes?: readonly (string | undefined)[];
  /** Whether a controller has no room for one. */
  readonly isRefused: boolean;
  /** Whether the module cache of the PolicyServer outlives its pods; undefined if that is not known. */
  readonly isDurable: boolean | undefined;
}

/** The view of an admission policy, with what its status says beyond the plan. */
export interface AdmissionRolloutView extends RolloutView<AdmissionPolicySpec> {
  /** What replicas counted in monitor mode, and the status of the policy may not contain yet. */
  readonly monitored: readonly ReplicaCount[];
  /** Whether the policy's PolicyServer exists. */
  readonly hasPolicyServer: boolean;
  /**
   * Covered if only as an earlier revision declared it. Coverage of the same requests by other policies, or in preparation of a
   * revision that never served, does not count.
   */
  readonly webhook: WebhookState;
  /** What is known about copies of its modules besides those of replicas; undefined until it is. */
  readonly copies?: CopyFacts | undefined;
  /** Whether the policy fits the kinds that the cluster serves; undefined while that is not known. */
  readonly typeCheck?: TypeCheckReport | undefined;
  /** Whether this is being found out. */
  readonly isTypeCheckPending: boolean;
  /** Annotations of the policy that are ignored. */
  readonly invalidAnnotations: readonly { readonly annotation: string; readonly message: string }[];
}
