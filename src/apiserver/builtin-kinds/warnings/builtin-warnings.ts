// Warnings of API servers about valid objects that are probably not what was meant, in their words.
import { valueAt } from '../../../values/index.ts';
import { isDeepStrictEqual } from 'node:util';
import type { KubernetesObject } from '../../../resources/index.ts';
import { cidrWarnings, networkPolicyWarnings } from '../../../resources/kind-validation/index.ts';
import { secretWarnings } from './certificate-warnings.ts';
import { listAt, placedItems } from './fields.ts';
import { formatWarnings } from './format-warnings.ts';
import { appArmorWarnings, podWarnings } from './pod-warnings.ts';
import { endpointSliceWarnings, endpointsWarnings, serviceWarnings } from './service-warnings.ts';
import {
  claimSpecWarnings,
  claimWarnings,
  persistentVolumeWarnings,
  storageClassWarnings,
} from './storage-warnings.ts';
import { historyWarnings, jobSpecWarnings, nameWarnings } from './workload-warnings.ts';

/** Of workloads, whose updates get warnings only with another spec: controllers update them all the time. */
const WORKLOADS: Readonly<Record<string, (object: KubernetesObject) => readonly string[]>> = {
  'apps/v1/DaemonSet': templateWarnings,
  'apps/v1/Deployment': templateWarnings,
  'apps/v1/ReplicaSet': templateWarnings,
  'apps/v1/StatefulSet': (object) => [
    ...templateWarnings(object),
    ...placedItems(valueAt(object, 'spec', 'volumeClaimTemplates'), 'spec.volumeClaimTemplates').flatMap(
      ({ path, value }) =>
        // API servers leave out the spec of the claim in this path.
        claimSpecWarnings(value['spec'], path),
    ),
    ...historyWarnings(object['spec']),
  ],
  'batch/v1/CronJob': (object) => [
    ...jobSpecWarnings(valueAt(object, 'spec', 'jobTemplate', 'spec'), 'spec.jobTemplate.spec'),
    ...podWarnings(valueAt(object, 'spec', 'jobTemplate', 'spec', 'template'), 'spec.jobTemplate.spec.template.'),
  ],
  'batch/v1/Job': (object) => [...jobSpecWarnings(object['spec'], 'spec'), ...templateWarnings(object)],
  'v1/ReplicationController': templateWarnings,
};

const OTHERS: Readonly<Record<string, (object: KubernetesObject) => readonly string[]>> = {
  'apiextensions.k8s.io/v1/CustomResourceDefinition': formatWarnings,
  'discovery.k8s.io/v1/EndpointSlice': endpointSliceWarnings,
  'networking.k8s.io/v1/Ingress': (object) =>
    annotationText(
      object,
      'kubernetes.io/ingress.class',
      (key) => `annotation "${key}" is deprecated, please use 'spec.ingressClassName' instead`,
    ),
  'networking.k8s.io/v1/NetworkPolicy': networkPolicyWarnings,
  'storage.k8s.io/v1/StorageClass': storageClassWarnings,
  'v1/Endpoints': endpointsWarnings,
  'v1/Node': nodeWarnings,
  'v1/PersistentVolume': persistentVolumeWarnings,
  'v1/PersistentVolumeClaim': claimWarnings,
  'v1/Secret': secretWarnings,
  'v1/Service': serviceWarnings,
  'v1/ServiceAccount': (object) =>
    annotationText(
      object,
      'kubernetes.io/enforce-mountable-secrets',
      (key) =>
        `metadata.annotations[${key}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
    ),
};

/**
 * What an API server warns of when the object is written. `old` is the object that an update replaces: pods that are updated get no
 * warnings, because controllers do that.
 */
export function builtinWarnings(object: KubernetesObject, old: KubernetesObject | undefined): readonly string[] {
  const type = `${object.apiVersion}/${object.kind}`;
  if (type === 'v1/Pod') {
    return old === undefined
      ? [...appArmorWarnings(object), ...nameWarnings(type, object), ...podWarnings(object)]
      : [];
  }
  const named = old === undefined ? nameWarnings(type, object) : [];
  const ofWorkload = WORKLOADS[type];
  if (ofWorkload !== undefined) {
    return isDeepStrictEqual(object['spec'], old?.['spec']) ? [] : [...named, ...ofWorkload(object)];
  }
  return [...named, ...(OTHERS[type]?.(object) ?? [])];
}

function templateWarnings(object: KubernetesObject): readonly string[] {
  return podWarnings(valueAt(object, 'spec', 'template'), 'spec.template.');
}

function annotationText(object: unknown, key: string, text: (key: string) => string): readonly string[] {
  return valueAt(object, 'metadata', 'annotations', key) === undefined ? [] : [text(key)];
}

function nodeWarnings(node: unknown): readonly string[] {
  return [
    ...(valueAt(node, 'spec', 'externalID') === undefined
      ? []
      : ['spec.externalID: this field is deprecated, and is unused by Kubernetes']),
    ...listAt(node, 'spec', 'podCIDRs').flatMap((range, index) => cidrWarnings(range, `spec.podCIDRs[${index}]`)),
  ];
}
