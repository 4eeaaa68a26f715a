// Access rules of the controller of NetworkPolicyStatuses.
import { builtinCatalogue, type VersionObject } from '../../engine/network-policy/index.ts';
import { type AccessRule, PORTCULLIS_GROUP } from '../../resources/index.ts';

/** The ConfigMaps with settings of network providers. */
export const PROVIDER_CONFIG_MAPS: readonly string[] = [
  ...new Set(builtinCatalogue().providers.flatMap(({ detect }) => detect?.configMap ?? [])),
].toSorted();

/** The objects of network providers that have their versions, by resource. */
const VERSION_OBJECTS: ReadonlyMap<string, VersionObject> = new Map(
  builtinCatalogue().providers.flatMap(({ detect }) =>
    detect?.object === undefined ? [] : [[detect.object.resource, detect.object] as const],
  ),
);

/** Rights to read what detection needs, and the policies. None is a right to write NetworkPolicies, which could open the network. */
export const NETWORK_POLICY_READER_RULES: readonly AccessRule[] = [
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['pods', 'nodes'], verbs: ['list', 'watch'] },
  { apiGroups: [''], resources: ['configmaps'], resourceNames: PROVIDER_CONFIG_MAPS, verbs: ['list', 'watch'] },
  ...[...VERSION_OBJECTS.values()].map(({ apiVersion, resource, name }) => ({
    apiGroups: [apiVersion.slice(0, apiVersion.indexOf('/'))],
    resources: [resource],
    resourceNames: [name],
    verbs: ['list', 'watch'],
  })),
];

/** The right to write the annotation, for installations that switch it on; an admission policy limits it to that. */
export const NETWORK_POLICY_ANNOTATION_RULES: readonly AccessRule[] = [
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['list', 'watch', 'patch'] },
];

/** The right to the status of KEP-2943, which only an embedded cluster has. */
export const NETWORK_POLICY_SUBRESOURCE_RULES: readonly AccessRule[] = [
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies/status'], verbs: ['patch'] },
];

/**
 * Rights of a network provider that reports for itself. RBAC ends at the subresource: the webhook for our own kinds limits it to the
 * entries of the `controllerName` that its NetworkPolicyProvider has, and to the heartbeat.
 */
export const NETWORK_POLICY_REPORTER_RULES: readonly AccessRule[] = [
  { apiGroups: ['networking.k8s.io'], resources: ['networkpolicies'], verbs: ['get', 'list', 'watch'] },
  { apiGroups: [PORTCULLIS_GROUP], resources: ['networkpolicyproviders'], verbs: ['get'] },
  {
    apiGroups: [PORTCULLIS_GROUP],
    resources: ['networkpolicystatuses'],
    verbs: ['get', 'list', 'watch', 'create', 'patch'],
  },
  {
    apiGroups: [PORTCULLIS_GROUP],
    resources: ['networkpolicystatuses/status', 'networkpolicyproviders/status'],
    verbs: ['patch'],
  },
];

/** Rights to the own kinds. A controller that is switched off has them too: it removes what it wrote. */
export const NETWORK_POLICY_STATUS_RULES: readonly AccessRule[] = [
  {
    apiGroups: [PORTCULLIS_GROUP],
    resources: ['networkpolicystatuses', 'networkpolicyproviders'],
    verbs: ['list', 'watch', 'create', 'patch', 'delete'],
  },
  {
    apiGroups: [PORTCULLIS_GROUP],
    resources: ['networkpolicystatuses/status', 'networkpolicyproviders/status'],
    verbs: ['patch'],
  },
];
