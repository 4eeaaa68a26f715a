// The rights that a replica needs. Written out, so that who only serves a file need not load the kinds.

/** `rbac.authorization.k8s.io/v1` PolicyRule, as far as it is used. */
export interface AccessRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/**
 * Of a Role in the namespace of the product. What context-aware policies read of the cluster comes on top, and is for the
 * administrator to grant.
 */
export const REPLICA_RULES: readonly AccessRule[] = [
  // What it is to serve.
  { apiGroups: ['portcullis.dev'], resources: ['policyrevisions'], verbs: ['list', 'watch'] },
  // What it reports, and where its peers are.
  {
    apiGroups: ['portcullis.dev'],
    resources: ['policyserverreplicas'],
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
  },
  { apiGroups: ['portcullis.dev'], resources: ['policyserverreplicas/status'], verbs: ['update'] },
  // That it lives, where it runs in no pod.
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get', 'create', 'update', 'delete'] },
];
