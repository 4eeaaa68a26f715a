import type { AccessRule } from '../resources/index.ts';

/** Cluster-wide access rules of a controller, since policies are in all namespaces. */
export const CONTROLLER_RULES: readonly AccessRule[] = [
  {
    apiGroups: ['policies.kubewarden.io'],
    resources: [
      'clusteradmissionpolicies',
      'admissionpolicies',
      'clusteradmissionpolicygroups',
      'admissionpolicygroups',
    ],
    // Rollbacks patch the spec.
    verbs: ['list', 'watch', 'patch'],
  },
  {
    apiGroups: ['policies.kubewarden.io'],
    resources: [
      'clusteradmissionpolicies/status',
      'admissionpolicies/status',
      'clusteradmissionpolicygroups/status',
      'admissionpolicygroups/status',
      'policyservers/status',
    ],
    verbs: ['patch'],
  },
  { apiGroups: ['policies.kubewarden.io'], resources: ['policyservers'], verbs: ['list', 'watch'] },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
    verbs: ['list', 'watch', 'create', 'update', 'patch', 'delete'],
  },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

/** The review by which a controller learns its own user name. */
export const SELF_REVIEW = {
  group: 'authentication.k8s.io',
  version: 'v1',
  resource: 'selfsubjectreviews',
  kind: 'SelfSubjectReview',
} as const;

/** Installations need not grant these: Kubernetes grants them to all users (`system:basic-user`). */
export const SELF_REVIEW_RULES: readonly AccessRule[] = [
  { apiGroups: [SELF_REVIEW.group], resources: [SELF_REVIEW.resource], verbs: ['create'] },
];

/** Access rules of a controller in the namespace of the product. */
export const CONTROLLER_NAMESPACE_RULES: readonly AccessRule[] = [
  {
    apiGroups: ['portcullis.dev'],
    resources: ['policyrevisions'],
    verbs: ['list', 'watch', 'create', 'delete'],
  },
  { apiGroups: ['portcullis.dev'], resources: ['policyrevisions/status'], verbs: ['update'] },
  { apiGroups: ['portcullis.dev'], resources: ['policyserverreplicas'], verbs: ['get', 'list', 'watch', 'delete'] },
  { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    verbs: ['get', 'create', 'update', 'delete'],
  },
];
