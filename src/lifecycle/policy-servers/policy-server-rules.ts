// RBAC rules for managing the objects of PolicyServers.
//
// Kubernetes lets a user grant only rights that the user has, unless it has the verbs `escalate` and `bind`, which would allow
// the controller to grant itself anything. So the controller has the rights of policy servers, and those of ClusterRoles with
// CONTEXT_AWARE_LABEL, and can grant no others.
import { REPLICA_CLUSTER_RULES, REPLICA_POD_RULES } from '../../control/access-rules/index.ts';
import type { AccessRule } from '../../resources/index.ts';

/** Verbs to watch, apply and remove objects. */
const ALL = ['get', 'list', 'watch', 'create', 'patch', 'delete'] as const;

/** Rules of a ClusterRole. */
export const POLICY_SERVER_RULES: readonly AccessRule[] = [
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['clusterroles', 'clusterrolebindings'], verbs: ALL },
  // To remove Kubewarden's finalizer from a deleted PolicyServer that was taken over.
  { apiGroups: ['policies.kubewarden.io'], resources: ['policyservers'], verbs: ['list', 'watch', 'patch'] },
  ...REPLICA_CLUSTER_RULES,
];

/** Rules of a Role in the namespace of Portcullis, besides those for certificates. */
export const POLICY_SERVER_NAMESPACE_RULES: readonly AccessRule[] = [
  { apiGroups: ['apps'], resources: ['deployments'], verbs: ALL },
  { apiGroups: [''], resources: ['services', 'serviceaccounts', 'configmaps'], verbs: ALL },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets'], verbs: ALL },
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ALL },
  { apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles', 'rolebindings'], verbs: ALL },
  ...REPLICA_POD_RULES,
];

/**
 * The kinds that context-aware policies may read by default, as in Kubewarden's chart, and the network providers for
 * `builtin:network-policy-support`: a ClusterRole with CONTEXT_AWARE_LABEL. An administrator adds others, such as Secrets.
 */
export const CONTEXT_AWARE_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['namespaces', 'pods', 'services'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['networking.k8s.io'], resources: ['ingresses'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: ['portcullis.dev'], resources: ['networkpolicyproviders'], verbs: ['get', 'list', 'watch'] },
];
