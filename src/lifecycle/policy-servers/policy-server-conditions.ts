// What the status of a PolicyServer says of its objects.
import type { ConditionStatus, Readiness } from '../../resources/index.ts';
import type { ModuleCacheKind } from './module-cache-volume.ts';
import type { ObjectKind } from './policy-server-objects.ts';

/** Conditions: whether the objects of a PolicyServer are as they are to be. Kubewarden's names where it has one. */
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

/** Condition: whether everything is done as the spec says. */
export const SPEC_SUPPORTED_CONDITION = 'SpecSupported';
/** Condition: whether the processes may read what context-aware policies declare. */
export const CONTEXT_AWARE_CONDITION = 'ContextAwareAccessGranted';

export const OBJECT_REASONS = {
  /** The object is as it is to be, or not there where none is to be. */
  succeeded: 'ReconciliationSucceeded',
  /** The cluster did not take it; the message has its words. Tried again. */
  failed: 'ReconciliationFailed',
  /** An object that somebody else made has the name. It is left alone. */
  nameTaken: 'NameTaken',
  /** The spec asks for what cannot be done yet, and must not be left out. Nothing is changed. */
  notSupported: 'NotSupported',
  /** The Deployment is as it is to be, and the cluster does not let it make pods. */
  podsNotCreated: 'PodsNotCreated',
  /** The Deployment is as it is to be, and its new pods do not become ready. */
  podsNotReady: 'PodsNotReady',
  /** Nobody has looked yet. */
  notKnown: 'NotKnown',
  /** Of SpecSupported. */
  allFieldsUsed: 'AllFieldsUsed',
  /** Of SpecSupported: the message says which fields are not used, or not as they say. */
  fieldsNotUsed: 'FieldsNotUsed',
  /** Of ContextAwareAccessGranted: everything that is declared may be read, or nothing is. */
  granted: 'Granted',
  /** Of ContextAwareAccessGranted: the controller does not have the rights that it would have to pass on. */
  notGranted: 'NotGranted',
  /** Of ContextAwareAccessGranted: the cluster does not have the kinds, so nobody can be let read them. */
  kindsNotServed: 'KindsNotServed',
} as const;

export interface ReportedCondition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
}

/** Reasons that last until a user changes something. Those of the Deployment are Failed for kstatus as well. */
export const STALLED_REASONS: ReadonlySet<string> = new Set([
  OBJECT_REASONS.nameTaken,
  OBJECT_REASONS.notSupported,
  OBJECT_REASONS.podsNotCreated,
  OBJECT_REASONS.podsNotReady,
  'SecretNotOurs',
]);

/** What became of the objects of a PolicyServer. */
export interface PolicyServerReport {
  /** The `metadata.generation` that it is about. */
  readonly generation: number;
  readonly image: string;
  readonly moduleCache: ModuleCacheKind;
  readonly conditions: readonly ReportedCondition[];
  /** What the Deployment still waits for. Undefined: nothing. */
  readonly rollout?: string | undefined;
  /** Why the last reconciliation failed. Undefined: it did not. */
  readonly failure?: Readiness | undefined;
}

/** Reports of all PolicyServers, for whoever writes statuses. */
export interface PolicyServerReports {
  /** False: it is another controller's, and its status as well. */
  isOurs(policyServer: string): boolean;
  /** Undefined while nothing is known. */
  report(policyServer: string): PolicyServerReport | undefined;
  /** Tells of reports that differ. Returns what ends it. */
  subscribe(listener: (policyServer: string) => void): () => void;
}
