// The kinds that Kubernetes itself has: how their resources are called, and which of them live in namespaces.
import type { Scope } from './suite.ts';

/** Kinds by group: those that live in namespaces, and those that do not. A plural that is not the usual one follows `=`. */
const KINDS: Readonly<Record<string, { readonly namespaced?: string; readonly cluster?: string }>> = {
  '': {
    namespaced:
      'Binding ConfigMap Endpoints=endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate ReplicationController ResourceQuota Secret ServiceAccount Service',
    cluster: 'ComponentStatus Namespace Node PersistentVolume',
  },
  'admissionregistration.k8s.io': {
    cluster:
      'MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration',
  },
  'apiextensions.k8s.io': { cluster: 'CustomResourceDefinition' },
  'apiregistration.k8s.io': { cluster: 'APIService' },
  apps: { namespaced: 'ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet' },
  'authentication.k8s.io': { cluster: 'SelfSubjectReview TokenReview' },
  'authorization.k8s.io': {
    namespaced: 'LocalSubjectAccessReview',
    cluster: 'SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview',
  },
  autoscaling: { namespaced: 'HorizontalPodAutoscaler' },
  batch: { namespaced: 'CronJob Job' },
  'certificates.k8s.io': {
    namespaced: 'PodCertificateRequest',
    cluster: 'CertificateSigningRequest ClusterTrustBundle',
  },
  'coordination.k8s.io': { namespaced: 'Lease LeaseCandidate' },
  'discovery.k8s.io': { namespaced: 'EndpointSlice' },
  'events.k8s.io': { namespaced: 'Event' },
  'flowcontrol.apiserver.k8s.io': { cluster: 'FlowSchema PriorityLevelConfiguration' },
  'internal.apiserver.k8s.io': { cluster: 'StorageVersion' },
  'networking.k8s.io': { namespaced: 'Ingress NetworkPolicy', cluster: 'IngressClass IPAddress ServiceCIDR' },
  'node.k8s.io': { cluster: 'RuntimeClass' },
  policy: { namespaced: 'PodDisruptionBudget' },
  'rbac.authorization.k8s.io': { namespaced: 'Role RoleBinding', cluster: 'ClusterRole ClusterRoleBinding' },
  'resource.k8s.io': {
    namespaced: 'ResourceClaim ResourceClaimTemplate',
    cluster: 'DeviceClass DeviceTaintRule ResourceSlice',
  },
  'scheduling.k8s.io': { cluster: 'PriorityClass' },
  'storage.k8s.io': {
    namespaced: 'CSIStorageCapacity',
    cluster: 'CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass',
  },
  'storagemigration.k8s.io': { cluster: 'StorageVersionMigration' },
};

/** How a kind is served. */
export interface KindResource {
  readonly plural: string;
  readonly scope: Scope;
}

const RESOURCES: ReadonlyMap<string, KindResource> = new Map(
  Object.entries(KINDS).flatMap(([group, { namespaced, cluster }]) => [
    ...entries(group, namespaced, 'Namespaced'),
    ...entries(group, cluster, 'Cluster'),
  ]),
);

/** The resource of a kind that is part of Kubernetes; undefined for all others. */
export function builtinResource(group: string, kind: string): KindResource | undefined {
  return RESOURCES.get(`${group}/${kind}`);
}

function entries(group: string, kinds: string | undefined, scope: Scope): [string, KindResource][] {
  return (kinds?.split(' ') ?? []).map((entry) => {
    const [kind = '', plural = usualPlural(kind)] = entry.split('=');
    return [`${group}/${kind}`, { plural, scope }];
  });
}

/** As English mostly does; the kinds above were looked at one by one. */
function usualPlural(kind: string): string {
  const name = kind.toLowerCase();
  if (/(?:s|x|ch)$/.test(name)) {
    return `${name}es`;
  }
  return /[^aeiou]y$/.test(name) ? `${name.slice(0, -1)}ies` : `${name}s`;
}
