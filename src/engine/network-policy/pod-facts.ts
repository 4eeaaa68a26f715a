import { isJsonObject } from '../values/json-text.ts';
import type { Labels } from '../../resources/index.ts';
import { textOf, valueAt } from '../../values/index.ts';

/** A pod, as far as policies depend on it. */
export interface PodFacts {
  readonly namespace: string;
  readonly labels?: Labels;
  readonly hostNetwork?: boolean;
  /** The names of ports of its sidecars: init containers that are restarted always. */
  readonly sidecarPorts?: readonly string[];
}

/** A Service that selects pods. */
export interface ServiceFacts {
  readonly namespace: string;
  readonly selector: Labels;
  /** The different labels of its pods. */
  readonly podLabels: readonly Labels[];
}

/** What policies depend on of pods and Services. */
export interface WorkloadFacts {
  /** The pods with named ports of sidecars. */
  readonly sidecars: readonly PodFacts[];
  readonly services: readonly ServiceFacts[];
}

/** Of all pods, workloads and Services among objects. @param namespace of objects that name none */
export function workloadFacts(objects: readonly unknown[], namespace?: string): WorkloadFacts {
  const pods = objects.flatMap((object) => podFacts(object, namespace) ?? []);
  const byNamespace = Map.groupBy(pods, (pod) => pod.namespace);
  return {
    sidecars: pods.filter(({ sidecarPorts = [] }) => sidecarPorts.length > 0),
    services: objects.flatMap((object) => serviceFacts(object, byNamespace, namespace) ?? []),
  };
}

/** Where workloads have the template of their pods. */
const TEMPLATES: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ['Pod', []],
  ['PodTemplate', ['template']],
  ['CronJob', ['spec', 'jobTemplate', 'spec', 'template']],
  ...['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job'].map(
    (kind) => [kind, ['spec', 'template']] as const,
  ),
]);

/** The pods of a Pod or a workload; undefined for any other object. @param namespace of an object that names none */
export function podFacts(object: unknown, namespace = 'default'): PodFacts | undefined {
  const path = TEMPLATES.get(textOf(valueAt(object, 'kind')));
  if (path === undefined) {
    return undefined;
  }
  const pod = valueAt(object, ...path);
  const sidecars = listAt(pod, 'spec', 'initContainers').filter((one) => valueAt(one, 'restartPolicy') === 'Always');
  const names = sidecars.flatMap((one) => listAt(one, 'ports').map((port) => textOf(valueAt(port, 'name'))));
  return {
    namespace: textOf(valueAt(object, 'metadata', 'namespace')) || namespace,
    labels: labelsAt(pod, 'metadata', 'labels'),
    hostNetwork: valueAt(pod, 'spec', 'hostNetwork') === true,
    sidecarPorts: names.filter((name) => name !== ''),
  };
}

/** Undefined for what is no Service, or selects nothing. */
function serviceFacts(
  object: unknown,
  pods: ReadonlyMap<string, readonly PodFacts[]>,
  preset = 'default',
): ServiceFacts | undefined {
  const selector = labelsAt(object, 'spec', 'selector');
  if (valueAt(object, 'kind') !== 'Service' || Object.keys(selector).length === 0) {
    return undefined;
  }
  const namespace = textOf(valueAt(object, 'metadata', 'namespace')) || preset;
  const selected = (pods.get(namespace) ?? []).flatMap(({ labels = {} }) => (hasAll(labels, selector) ? [labels] : []));
  const different = new Map(selected.map((labels) => [JSON.stringify(labels), labels]));
  return { namespace, selector, podLabels: [...different.values()] };
}

function hasAll(labels: Labels, wanted: Labels): boolean {
  return Object.entries(wanted).every(([key, value]) => labels[key] === value);
}

function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = valueAt(value, ...path);
  return Array.isArray(found) ? found : [];
}

function labelsAt(value: unknown, ...path: readonly string[]): Labels {
  const found = valueAt(value, ...path);
  const texts = Object.entries(isJsonObject(found) ? found : {}).filter(
    (entry): entry is [string, string] => typeof entry[1] === 'string',
  );
  return Object.fromEntries(texts);
}
