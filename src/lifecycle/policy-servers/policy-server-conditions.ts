// Conditions of a PolicyServer about its objects.
import type { ConditionStatus, Readiness } from '../../resources/index.ts';
import type { ModuleCacheKind } from './module-cache-volume.ts';
import type { ObjectKind } from './object-kinds.ts';

/** Conditions: whether objects of a kind are applied. Kubewarden's names where they exist. */
export const OBJECT_CONDITIONS: Readonly<Record<ObjectKind, string>> = {
  ServiceAccount: 'AccessReconciled',
  Role: 'AccessReconciled',
  RoleBinding: 'AccessReconciled',
  ClusterRole: 'AccessReconciled',
  ClusterRoleBinding: 'AccessReconciled',
  ConfigMap: 'ConfigMapReconciled',
  NetworkPolicy: 'NetworkPolicyReconciled',
  PodDisruptionBudget: 'PodDisruptionBudgetReconciled',
  Service: 'ServiceReconciled',
  Deployment: 'DeploymentReconciled',
};

/** Condition: whether all fields of the spec are used. */
export const SPEC_SUPPORTED_CONDITION = 'SpecSupported';
/** Condition: whether the processes may read the kinds that context-aware policies declare. */
export const CONTEXT_AWARE_CONDITION = 'ContextAwareAccessGranted';

export const OBJECT_REASONS = {
  /** The objects are applied, or removed where none are wanted. */
  succeeded: 'ReconciliationSucceeded',
  /** The API server rejected an object; the message is its own. Retried. */
  failed: 'ReconciliationFailed',
  /** Another user or product created an object of this name. It is not changed. */
  nameTaken: 'NameTaken',
  /** A ConfigMap with the verification of signatures does not exist, or lacks its key. Nothing is changed. */
  verificationNotFound: 'VerificationConfigNotFound',
  /** The content of such a ConfigMap cannot be used. Nothing is changed. */
  verificationInvalid: 'VerificationConfigInvalid',
  /** The Deployment is applied, but the cluster does not create its pods. */
  podsNotCreated: 'PodsNotCreated',
  /** The Deployment is applied, but its new pods do not become ready. */
  podsNotReady: 'PodsNotReady',
  /** Not checked yet. */
  notKnown: 'NotKnown',
  /** On SpecSupported. */
  allFieldsUsed: 'AllFieldsUsed',
  /** On SpecSupported: the message names fields that are not used, or used differently. */
  fieldsNotUsed: 'FieldsNotUsed',
  /** On ContextAwareAccessGranted: every declared kind may be read. */
  granted: 'Granted',
  /** On ContextAwareAccessGranted: the controller lacks rights that it would have to grant. */
  notGranted: 'NotGranted',
  /** On ContextAwareAccessGranted: the cluster does not serve some declared kinds. */
  kindsNotServed: 'KindsNotServed',
} as const;

export interface ReportedCondition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

/** Reasons that last until a user acts. kstatus also treats a Deployment with such pods as Failed. */
export const STALLED_REASONS: ReadonlySet<string> = new Set([
  OBJECT_REASONS.nameTaken,
  OBJECT_REASONS.verificationInvalid,
  OBJECT_REASONS.podsNotCreated,
  OBJECT_REASONS.podsNotReady,
  'SecretNotOurs',
]);

/** A report on the objects of a PolicyServer. */
export interface PolicyServerReport {
  /** The observed `metadata.generation`. */
  readonly generation: number;
  readonly image: string;
  readonly moduleCache: ModuleCacheKind;
  readonly conditions: readonly ReportedCondition[];
  /** Pods that API servers reach. Undefined where no controller writes the status of Deployments. */
  readonly readyPods?: number | undefined;
  /** What the rollout of the Deployment waits for, if anything. */
  readonly rollout?: string | undefined;
  /** The failure of the last reconciliation, if any. */
  readonly failure?: Readiness | undefined;
}

/** Reports on all PolicyServers, for the controller that writes statuses. */
export interface PolicyServerReports {
  /** False if another controller owns the PolicyServer and its status. */
  isOurs(policyServer: string): boolean;
  /** Undefined until known. */
  report(policyServer: string): PolicyServerReport | undefined;
  /** Calls `listener` with the PolicyServer of each changed report. Returns a function that unsubscribes. */
  subscribe(listener: (policyServer: string) => void): () => void;
}
