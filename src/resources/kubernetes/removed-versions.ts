// Versions of Kubernetes' own kinds that API servers since 1.30, the oldest release that Portcullis supports, do not serve:
// https://kubernetes.io/docs/reference/using-api/deprecation-guide/

/** Resources by the version that was removed; `*` for a version without any resource left. */
const REMOVED: Readonly<Record<string, string>> = {
  'admissionregistration.k8s.io/v1beta1': 'mutatingwebhookconfigurations validatingwebhookconfigurations',
  'apiextensions.k8s.io/v1beta1': '*',
  'apiregistration.k8s.io/v1beta1': '*',
  'apps/v1beta1': '*',
  'apps/v1beta2': '*',
  'authentication.k8s.io/v1beta1': 'tokenreviews',
  'authorization.k8s.io/v1beta1': '*',
  'autoscaling/v2beta1': '*',
  'autoscaling/v2beta2': '*',
  'batch/v1beta1': '*',
  'certificates.k8s.io/v1beta1': 'certificatesigningrequests',
  'coordination.k8s.io/v1beta1': 'leases',
  'discovery.k8s.io/v1beta1': '*',
  'events.k8s.io/v1beta1': '*',
  'extensions/v1beta1': '*',
  'flowcontrol.apiserver.k8s.io/v1beta1': '*',
  'flowcontrol.apiserver.k8s.io/v1beta2': '*',
  'networking.k8s.io/v1beta1': 'ingressclasses ingresses',
  'node.k8s.io/v1beta1': '*',
  'policy/v1beta1': '*',
  'rbac.authorization.k8s.io/v1beta1': '*',
  'scheduling.k8s.io/v1beta1': '*',
  'storage.k8s.io/v1beta1': 'csidrivers csinodes csistoragecapacities storageclasses volumeattachments',
};

/** Whether supported API servers do not serve a resource in a version any more. @param resource without a subresource */
export function isRemovedVersion(group: string, version: string, resource: string): boolean {
  const removed = Object.hasOwn(REMOVED, `${group}/${version}`) ? (REMOVED[`${group}/${version}`] ?? '') : '';
  return removed === '*' || removed.split(' ').includes(resource);
}
