// Warnings of API servers about valid objects that are probably not what was meant, in their words.
import { isJsonObject, type KubernetesObject } from '../../../resources/index.ts';
import { cidrWarnings } from './cidr-warnings.ts';
import { podWarnings } from './pod-warnings.ts';

/** Fields of a template in a workload, by `apiVersion/kind`. */
const TEMPLATES: Readonly<Record<string, readonly string[]>> = {
  'apps/v1/DaemonSet': ['spec', 'template'],
  'apps/v1/Deployment': ['spec', 'template'],
  'apps/v1/ReplicaSet': ['spec', 'template'],
  'apps/v1/StatefulSet': ['spec', 'template'],
  'batch/v1/CronJob': ['spec', 'jobTemplate', 'spec', 'template'],
  'batch/v1/Job': ['spec', 'template'],
  'v1/ReplicationController': ['spec', 'template'],
};

/**
 * What an API server warns of when the object is written. `old` is the object that an update replaces: pods that are updated get no
 * warnings, because controllers do that.
 * https://github.com/kubernetes/kubernetes/blob/master/pkg/api/pod/warnings.go
 */
export function builtinWarnings(object: KubernetesObject, old: KubernetesObject | undefined): readonly string[] {
  const type = `${object.apiVersion}/${object.kind}`;
  if (type === 'v1/Pod') {
    return old === undefined ? podWarnings(object['spec'], 'spec') : [];
  }
  if (type === 'networking.k8s.io/v1/NetworkPolicy') {
    return networkPolicyWarnings(object['spec']);
  }
  const path = TEMPLATES[type];
  if (path === undefined) {
    return [];
  }
  const fields = [...path, 'spec'];
  return podWarnings(
    fields.reduce<unknown>((value, field) => memberOf(value, field), object),
    fields.join('.'),
  );
}

function networkPolicyWarnings(spec: unknown): readonly string[] {
  const directions = [['ingress', 'from'] as const, ['egress', 'to'] as const];
  return directions.flatMap(([direction, peers]) =>
    itemsOf(spec, direction).flatMap((rule, index) =>
      itemsOf(rule, peers).flatMap((peer, position) => {
        const path = `spec.${direction}[${index}].${peers}[${position}].ipBlock`;
        const block = memberOf(peer, 'ipBlock');
        return [
          ...cidrWarnings(memberOf(block, 'cidr'), `${path}.cidr`),
          ...itemsOf(block, 'except').flatMap((one, at) => cidrWarnings(one, `${path}.except[${at}]`)),
        ];
      }),
    ),
  );
}

function memberOf(value: unknown, name: string): unknown {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function itemsOf(value: unknown, name: string): readonly unknown[] {
  const items = memberOf(value, name);
  return Array.isArray(items) ? items : [];
}
