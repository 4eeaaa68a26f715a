// The rights that it takes to make the objects of PolicyServers.
//
// Kubernetes lets nobody pass on rights that they do not have themselves, unless they have the verbs `escalate` and `bind`,
// which would let a controller give itself anything. So the controller has what processes of policy servers get, and what
// ClusterRoles with the label CONTEXT_AWARE_LABEL give it, and can pass on nothing else.
import { REPLICA_CLUSTER_RULES, REPLICA_POD_RULES } from '../../control/index.ts';
import type { AccessRule } from '../../resources/index.ts';

/** What it takes to have objects applied, seen and removed. */
const ALL = ['get', 'list', 'watch', 'create', 'patch', 'delete'] as const;

/** In the whole cluster. */
export const POLICY_SERVER_RULES: readonly AccessRule[] = [
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles', 'clusterrolebindings'], verbs: ALL },
  // To take Kubewarden's finalizer from what was taken over, and is deleted.
  { apiGroups: ['policies.kubewarden.io'], resources: ['policyservers'], verbs: ['list', 'watch', 'patch'] },
  ...REPLICA_CLUSTER_RULES,
];

/** In the namespace of the product, beside what it takes to keep certificates. */
export const POLICY_SERVER_NAMESPACE_RULES: readonly AccessRule[] = [
  { apiGroups: ['apps'], resources: ['deployments'], verbs: ALL },
  { apiGroups: [''], resources: ['services', 'serviceaccounts', 'configmaps'], verbs: ALL },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ALL },
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ALL },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: ALL },
  ...REPLICA_POD_RULES,
];

/**
 * What context-aware policies may read of a cluster from the start, as Kubewarden's chart has it: a ClusterRole with
 * CONTEXT_AWARE_LABEL. Other kinds, Secrets above all, are for an administrator to add.
 */
export const CONTEXT_AWARE_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['namespaces', 'pods', 'services'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['networking.k8s.io'], resources: ['ingresses'], verbs: ['get', 'list', 'watch'] },
];
