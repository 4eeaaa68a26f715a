import {
  type AccessRule,
  CONTROLLER_REPLICAS,
  knownKind,
  POLICIES_GROUP,
  POLICY_KINDS,
  POLICY_REVISIONS,
  POLICY_SERVER_REPLICAS,
  POLICY_SERVERS,
  PORTCULLIS_GROUP,
} from '../../resources/index.ts';

/** Cluster-wide access rules of a controller, since policies are in all namespaces. */
export const CONTROLLER_RULES: readonly AccessRule[] = [
  {
    apiGroups: [POLICIES_GROUP],
    resources: POLICY_KINDS.map(({ resource }) => resource),
    // Rollbacks patch the spec.
    verbs: ['list', 'watch', 'patch'],
  },
  {
    apiGroups: [POLICIES_GROUP],
    resources: [...POLICY_KINDS, POLICY_SERVERS].map(({ resource }) => `${resource}/status`),
    verbs: ['patch'],
  },
  { apiGroups: [POLICIES_GROUP], resources: [POLICY_SERVERS.resource], verbs: ['list', 'watch'] },
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'],
    verbs: ['list', 'watch', 'create', 'update', 'patch', 'delete'],
  },
  { apiGroups: [''], resources: ['events'], verbs: ['create', 'patch'] },
];

/** The review by which a controller learns its own user name. */
export const SELF_REVIEW = knownKind('authentication.k8s.io/v1', 'SelfSubjectReview');

/** Installations need not grant these: Kubernetes grants them to all users (`system:basic-user`). */
export const SELF_REVIEW_RULES: readonly AccessRule[] = [
  { apiGroups: [SELF_REVIEW.group], resources: [SELF_REVIEW.resource], verbs: ['create'] },
];

/** Access rules of a controller in the namespace of the product. */
export const CONTROLLER_NAMESPACE_RULES: readonly AccessRule[] = [
  {
    apiGroups: [PORTCULLIS_GROUP],
    resources: [POLICY_REVISIONS.resource],
    verbs: ['list', 'watch', 'create', 'delete'],
  },
  { apiGroups: [PORTCULLIS_GROUP], resources: [`${POLICY_REVISIONS.resource}/status`], verbs: ['update'] },
  {
    apiGroups: [PORTCULLIS_GROUP],
    resources: [POLICY_SERVER_REPLICAS.resource],
    verbs: ['get', 'list', 'watch', 'delete'],
  },
  {
    apiGroups: [PORTCULLIS_GROUP],
    resources: [CONTROLLER_REPLICAS.resource],
    verbs: ['get', 'list', 'watch', 'create', 'update', 'delete'],
  },
  { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
  {
    apiGroups: ['coordination.k8s.io'],
    resources: ['leases'],
    verbs: ['get', 'list', 'create', 'update', 'delete'],
  },
];
