import type { AccessRule } from '../../resources/index.ts';

/** Access rules of the webhook for our own kinds and its registration. */
export const OWN_KINDS_RULES: readonly AccessRule[] = [
  {
    apiGroups: ['admissionregistration.k8s.io'],
    resources: ['validatingwebhookconfigurations'],
    verbs: ['get', 'list', 'watch', 'create', 'update'],
  },
  // The addresses of API servers, which are told more than other clients.
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], resourceNames: ['kubernetes'], verbs: ['get'] },
  // What authors of namespaced policies may do.
  { apiGroups: ['authorization.k8s.io'], resources: ['subjectaccessreviews'], verbs: ['create'] },
];
