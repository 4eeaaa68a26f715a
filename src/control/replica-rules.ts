// The rights that a replica needs. Written out, so that who only serves a file need not load the kinds.
import type { AccessRule } from '../resources/index.ts';

/**
 * Of a ClusterRole. The labels of namespaces are read while there are policies that select namespaces by them; without the
 * right those policies answer by their failurePolicy.
 */
export const REPLICA_CLUSTER_RULES: readonly AccessRule[] = [
  { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'list', 'watch'] },
];

/**
 * Of a Role in the namespace of the product, for a replica that runs in a pod. What context-aware policies read of the cluster
 * comes on top, and is for the administrator to grant.
 */
export const REPLICA_POD_RULES: readonly AccessRule[] = [
  // What it is to serve.
  { apiGroups: ['portcullis.dev'], resources: ['policyrevisions'], verbs: ['list', 'watch'] },
  // What it reports, and where its peers are.
  {
    apiGroups: ['portcullis.dev'],
    resources: ['policyserverreplicas'],
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
  },
  { apiGroups: ['portcullis.dev'], resources: ['policyserverreplicas/status'], verbs: ['update'] },
];

/** The same for one that runs in no pod: it says by a Lease that it lives. Pods have none: the controller's is among them. */
export const REPLICA_RULES: readonly AccessRule[] = [
  ...REPLICA_POD_RULES,
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update', 'delete'] },
];
