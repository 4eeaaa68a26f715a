// Names and scopes of Kubernetes' own kinds, without schemas.

import type { KubernetesObject } from '../kubernetes-object.ts';
import { groupVersionOf, type ResourceType } from '../resource-type.ts';

/** Names and scope of a builtin kind. */
export interface BuiltinKind {
  /** Empty for the core group. */
  readonly group: string;
  /** The stored and preferred version. */
  readonly version: string;
  readonly kind: string;
  /** Plural, lower case: `pods`. */
  readonly resource: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
}

/**
 * Kinds by group and version: `Kind`, `Kind=plural` with an irregular plural, then short names after `:` and categories
 * after `@`, each separated by commas.
 */
const KINDS: readonly (readonly [groupVersion: string, namespaced: string, cluster: string])[] = [
  [
    'v1',
    'Binding ConfigMap:cm Endpoints=endpoints:ep Event:ev LimitRange:limits PersistentVolumeClaim:pvc Pod:po@all PodTemplate ReplicationController:rc@all ResourceQuota:quota Secret Service:svc@all ServiceAccount:sa',
    'ComponentStatus:cs Namespace:ns Node:no PersistentVolume:pv',
  ],
  [
    'admissionregistration.k8s.io/v1',
    '',
    'MutatingAdmissionPolicy@api-extensions MutatingAdmissionPolicyBinding@api-extensions MutatingWebhookConfiguration@api-extensions ValidatingAdmissionPolicy@api-extensions ValidatingAdmissionPolicyBinding@api-extensions ValidatingWebhookConfiguration@api-extensions',
  ],
  ['apiextensions.k8s.io/v1', '', 'CustomResourceDefinition:crd,crds@api-extensions'],
  ['apiregistration.k8s.io/v1', '', 'APIService@api-extensions'],
  ['apps/v1', 'ControllerRevision DaemonSet:ds@all Deployment:deploy@all ReplicaSet:rs@all StatefulSet:sts@all', ''],
  ['authentication.k8s.io/v1', '', 'SelfSubjectReview TokenReview'],
  [
    'authorization.k8s.io/v1',
    'LocalSubjectAccessReview',
    'SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview',
  ],
  ['autoscaling/v2', 'HorizontalPodAutoscaler:hpa@all', ''],
  ['batch/v1', 'CronJob:cj@all Job@all', ''],
  ['certificates.k8s.io/v1', 'PodCertificateRequest', 'CertificateSigningRequest:csr ClusterTrustBundle'],
  ['coordination.k8s.io/v1', 'Lease LeaseCandidate', ''],
  ['discovery.k8s.io/v1', 'EndpointSlice', ''],
  ['events.k8s.io/v1', 'Event:ev', ''],
  ['flowcontrol.apiserver.k8s.io/v1', '', 'FlowSchema PriorityLevelConfiguration'],
  ['internal.apiserver.k8s.io/v1alpha1', '', 'StorageVersion'],
  ['networking.k8s.io/v1', 'Ingress:ing NetworkPolicy:netpol', 'IPAddress:ip IngressClass ServiceCIDR'],
  ['node.k8s.io/v1', '', 'RuntimeClass'],
  ['policy/v1', 'PodDisruptionBudget:pdb', ''],
  ['rbac.authorization.k8s.io/v1', 'Role RoleBinding', 'ClusterRole ClusterRoleBinding'],
  ['resource.k8s.io/v1', 'ResourceClaim ResourceClaimTemplate', 'DeviceClass DeviceTaintRule ResourceSlice'],
  ['scheduling.k8s.io/v1', '', 'PriorityClass:pc'],
  [
    'storage.k8s.io/v1',
    'CSIStorageCapacity',
    'CSIDriver CSINode StorageClass:sc VolumeAttachment VolumeAttributesClass:vac',
  ],
  ['storagemigration.k8s.io/v1alpha1', '', 'StorageVersionMigration'],
];

const BY_GROUP_KIND: ReadonlyMap<string, BuiltinKind> = new Map(
  KINDS.flatMap(([groupVersion, namespaced, cluster]) => [
    ...parseKinds(groupVersion, namespaced, true),
    ...parseKinds(groupVersion, cluster, false),
  ]).map((entry) => [`${entry.group}/${entry.kind}`, entry]),
);

/** The builtin kind of that name, if any. */
export function builtinKind(group: string, kind: string): BuiltinKind | undefined {
  return BY_GROUP_KIND.get(`${group}/${kind}`);
}

/** The builtin kinds of all groups, the core group first. */
export function allBuiltinKinds(): readonly BuiltinKind[] {
  return [...BY_GROUP_KIND.values()];
}

/** All builtin kinds of a group. */
export function builtinKinds(group: string): readonly BuiltinKind[] {
  return [...BY_GROUP_KIND.values()].filter((one) => one.group === group);
}

/** The builtin kind of that name and version, if any: `kubernetesKind('apps/v1', 'Deployment')`. */
export function kubernetesKind(apiVersion: string, kind: string): BuiltinKind | undefined {
  const { group, version } = groupVersionOf(apiVersion);
  const found = builtinKind(group, kind);
  return found?.version === version ? found : undefined;
}

/**
 * As {@link kubernetesKind}, for a kind that this code names, with objects of type `T`.
 * @throws Error if there is none: the name has a typo
 */
export function knownKind<T extends KubernetesObject = KubernetesObject>(
  apiVersion: string,
  kind: string,
): BuiltinKind & ResourceType<T> {
  const found = kubernetesKind(apiVersion, kind);
  if (found === undefined) {
    throw new Error(`Kubernetes has no kind ${kind} of ${apiVersion}`);
  }
  return found;
}

function parseKinds(groupVersion: string, kinds: string, namespaced: boolean): BuiltinKind[] {
  const [group = '', version = ''] = groupVersion.includes('/') ? groupVersion.split('/') : ['', groupVersion];
  return kinds.split(' ').flatMap((text) => {
    const { kind, plural, shortNames, categories } =
      /^(?<kind>\w+)(?:=(?<plural>\w+))?(?::(?<shortNames>[\w,]+))?(?:@(?<categories>[\w,-]+))?$/.exec(text)?.groups ??
      {};
    if (kind === undefined) {
      return [];
    }
    const singular = kind.toLowerCase();
    return {
      group,
      version,
      kind,
      resource: plural ?? usualPlural(singular),
      singular,
      namespaced,
      shortNames: shortNames?.split(',') ?? [],
      categories: categories?.split(',') ?? [],
    };
  });
}

/** The regular English plural, which was checked for the kinds above. */
function usualPlural(name: string): string {
  if (/(?:s|x|ch)$/.test(name)) {
    return `${name}es`;
  }
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}
