// RBAC rules of a replica. Written out, so that a server for a policies file need not load the kinds.
import type { AccessRule } from '../../resources/index.ts';

/**
 * Rules of a ClusterRole. A replica watches the labels of namespaces while a policy has a namespaceSelector; without
 * this right such policies answer by their failurePolicy.
 */
export const REPLICA_CLUSTER_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
  // Exceptions are in the namespaces of what they except.
  { apiGroups: ['portcullis.dev'], resources: ['policyexceptions'], verbs: ['list', 'watch'] },
];

/**
 * Rules of a Role in the namespace of Portcullis, for a replica in a pod. An administrator grants the reads of
 * context-aware policies separately.
 */
export const REPLICA_POD_RULES: readonly AccessRule[] = [
  // Policies to serve.
  { apiGroups: ['portcullis.dev'], resources: ['policyrevisions'], verbs: ['list', 'watch'] },
  // Its status, and the addresses of its peers.
  {
    apiGroups: ['portcullis.dev'],
    resources: ['policyserverreplicas'],
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
  },
  { apiGroups: ['portcullis.dev'], resources: ['policyserverreplicas/status'], verbs: ['update'] },
  // The addresses of controllers, which have copies of modules.
  { apiGroups: ['portcullis.dev'], resources: ['controllerreplicas'], verbs: ['list', 'watch'] },
];

/**
 * Rules for a replica outside of a pod, which holds a Lease. Pods have no access to Leases, because the controller's
 * Lease is in the same namespace.
 */
export const REPLICA_RULES: readonly AccessRule[] = [
  ...REPLICA_POD_RULES,
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update', 'delete'] },
];
