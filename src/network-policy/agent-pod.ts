// What detection reads of pods: little, because a large cluster has tens of thousands in the network of their host.
import { isJsonObject, knownKind, type KubernetesObject, own, textOf, textsOf, valueAt } from '../resources/index.ts';

export const PODS = knownKind('v1', 'Pod');

/**
 * Agents of network providers are in the network of their host. Pods of users are not where the baseline Pod Security Standard
 * holds, so that they cannot pretend to be an agent.
 */
export const AGENT_PODS = 'spec.hostNetwork=true';

/** Containers of a pod, and arguments of a container, that are read. */
const MAX_CONTAINERS = 32;
const MAX_ARGUMENTS = 128;
/** Characters of an image or an argument. */
const MAX_TEXT = 1024;
/** Labels with the version of what runs. */
const VERSION_LABEL = 'app.kubernetes.io/version';
const CHART_LABEL = 'helm.sh/chart';

export interface AgentContainer {
  readonly name: string;
  readonly image: string;
  readonly arguments: readonly string[];
}

/** A pod that may be an agent. */
export interface AgentPod {
  readonly namespace: string;
  readonly node: string | undefined;
  readonly daemonSet: string | undefined;
  readonly os: 'linux' | 'windows';
  readonly labels: Readonly<Record<string, unknown>>;
  readonly containers: readonly AgentContainer[];
}

/** Undefined for a pod that has ended, or is not in the network of its host. */
export function readAgentPod(pod: KubernetesObject): AgentPod | undefined {
  const spec = pod['spec'];
  const phase = valueAt(pod, 'status', 'phase');
  if (valueAt(spec, 'hostNetwork') !== true || phase === 'Succeeded' || phase === 'Failed') {
    return undefined;
  }
  const os = valueAt(spec, 'os', 'name') ?? valueAt(spec, 'nodeSelector', 'kubernetes.io/os');
  const node = textOf(valueAt(spec, 'nodeName'));
  return {
    namespace: pod.metadata.namespace ?? '',
    node: node === '' ? undefined : node,
    daemonSet: pod.metadata.ownerReferences?.find(({ kind }) => kind === 'DaemonSet')?.name,
    os: os === 'windows' ? 'windows' : 'linux',
    labels: pod.metadata.labels ?? {},
    containers: listOf(valueAt(spec, 'containers')).slice(0, MAX_CONTAINERS).map(readContainer),
  };
}

function readContainer(value: unknown): AgentContainer {
  const texts = ['command', 'args'].flatMap((key) => textsOf(valueAt(value, key)));
  return {
    name: textOf(valueAt(value, 'name')),
    image: textOf(valueAt(value, 'image')).slice(0, MAX_TEXT),
    arguments: texts.slice(0, MAX_ARGUMENTS).map((text) => text.slice(0, MAX_TEXT)),
  };
}

/** The pod with the fields that {@link readAgentPod} reads, for caches. */
export function withoutOtherFields(pod: KubernetesObject): KubernetesObject {
  const { name, namespace, uid, resourceVersion, labels, ownerReferences } = pod.metadata;
  const spec = pod['spec'];
  const containers = listOf(valueAt(spec, 'containers')).map((container) =>
    pick(container, ['name', 'image', 'command', 'args']),
  );
  return {
    apiVersion: pod.apiVersion,
    kind: pod.kind,
    metadata: pick({ name, namespace, uid, resourceVersion, labels, ownerReferences }, [
      'name',
      'namespace',
      'uid',
      'resourceVersion',
      'labels',
      'ownerReferences',
    ]),
    spec: { ...pick(spec, ['hostNetwork', 'nodeName', 'nodeSelector', 'os']), containers },
    status: pick(pod['status'], ['phase']),
  };
}

/** The fields that are there. */
function pick(value: unknown, names: readonly string[]): Record<string, unknown> {
  return isJsonObject(value)
    ? Object.fromEntries(
        names.flatMap((name) => {
          const field = own(value, name);
          return field === undefined ? [] : [[name, field] as const];
        }),
      )
    : {};
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Host, last segment of the path, and tag of an image. */
export interface AgentImage {
  readonly registry: string;
  readonly name: string;
  /** Undefined for an image by digest only. */
  readonly tag: string | undefined;
}

export function imageName(image: string): AgentImage {
  const [reference = ''] = image.split('@');
  const segments = reference.split('/');
  const last = segments.at(-1) ?? '';
  const colon = last.indexOf(':');
  return {
    registry: segments.length > 1 ? (segments[0] ?? '') : '',
    name: colon === -1 ? last : last.slice(0, colon),
    tag: colon === -1 ? undefined : last.slice(colon + 1),
  };
}

/** Versions that a pod names: the tag of the image first, then its labels. */
export function versionTexts({ labels }: AgentPod, { image }: AgentContainer): readonly string[] {
  const { tag } = imageName(image);
  const chart = /-(v?\d.*)$/.exec(textOf(valueAt(labels, CHART_LABEL)))?.[1];
  return [tag, textOf(valueAt(labels, VERSION_LABEL)), chart].filter(
    (text): text is string => text !== undefined && text !== '',
  );
}
