// Which network providers a cluster has. No API says it: pods of agents do, and kubelets with a provider built in.
import {
  type AgentPattern,
  type Catalogue,
  compareProviderVersions,
  type Detection,
  isInRange,
  leastProviderVersion,
  parseProviderVersion,
  type Provider,
} from '../engine/network-policy/index.ts';
import { compareStrings } from '../go/index.ts';
import { isJsonObject, type KubernetesObject, textOf, valueAt } from '../resources/index.ts';
import { parseJson } from '../values/index.ts';
import { type AgentContainer, type AgentPod, imageName, readAgentPod, versionTexts } from './agent-pod.ts';

/** The objects that detection reads. */
export interface ClusterObjects {
  readonly pods: readonly AgentPod[];
  readonly nodes: readonly KubernetesObject[];
  readonly configMaps: readonly KubernetesObject[];
  /** Objects of providers that have their versions. Default: none. */
  readonly versions?: readonly KubernetesObject[];
}

export interface DetectedProvider {
  /** Its name in the catalogue. */
  readonly name: string;
  /** The lowest version that runs. Undefined while one of them is not known. */
  readonly version: string | undefined;
  /** All versions, the lowest first; those that are no versions come last. */
  readonly versions: readonly string[];
  /** Settings that are known. Those that differ between agents are not. */
  readonly settings: Readonly<Record<string, string>>;
  /** The names of nodes with an agent, sorted. */
  readonly nodes: readonly string[];
}

/** Characters of a setting: those that matter are short. */
const MAX_SETTING = 1024;
/** Versions of a provider that are listed: a rollout has two or three. */
const MAX_VERSIONS = 16;
/** The annotation in which k3s records its arguments, as JSON. */
export const NODE_ARGUMENTS = 'k3s.io/node-args';

/** The providers, sorted by name. A function of the objects, whatever their order. */
export function detectProviders(objects: ClusterObjects, catalogue: Catalogue): readonly DetectedProvider[] {
  const agents = Map.groupBy(
    objects.pods.flatMap((pod) => agentsOf(pod, catalogue)),
    ({ provider }) => provider,
  );
  const byPods = [...agents].map(([provider, found]) => describe(provider, found, objects));
  const byNodes = catalogue.providers.flatMap((provider) => detectBuiltIn(provider, objects.nodes));
  return [...byPods, ...byNodes].sort((one, other) => compareStrings(one.name, other.name));
}

/** The names of the providers whose agents a pod has. */
export function providersOfPod(pod: KubernetesObject, catalogue: Catalogue): readonly string[] {
  const read = readAgentPod(pod);
  return read === undefined ? [] : agentsOf(read, catalogue).map(({ provider }) => provider.name);
}

/** An agent of a provider. */
interface Agent {
  readonly provider: Provider;
  readonly detect: Detection;
  readonly pod: AgentPod;
  readonly container: AgentContainer;
}

/** The providers whose agents a pod has; a pod of one may look like that of another. */
function agentsOf(pod: AgentPod, { providers }: Catalogue): readonly Agent[] {
  const found = providers.flatMap((provider): readonly Agent[] => {
    const { detect } = provider;
    const container = detect && findAgent(pod, detect);
    return container === undefined || detect === undefined ? [] : [{ provider, detect, pod, container }];
  });
  const replaced = new Set(found.flatMap(({ detect }) => detect.replaces ?? []));
  return found.filter(({ provider }) => !replaced.has(provider.name));
}

/** The container of the first pattern that the pod matches. */
function findAgent(pod: AgentPod, { agents }: Detection): AgentContainer | undefined {
  for (const pattern of agents) {
    const container = pod.containers.find((one) => matches(pod, one, pattern));
    if (container !== undefined) {
      return container;
    }
  }
  return undefined;
}

function matches(pod: AgentPod, { name, image }: AgentContainer, pattern: AgentPattern): boolean {
  const { container, images, registry, daemonSets, os, beside } = pattern;
  const found = imageName(image);
  return (
    name === container &&
    (images === undefined || images.some((one) => isLike(found.name, one))) &&
    (registry === undefined || found.registry === registry) &&
    (daemonSets === undefined || daemonSets.some((one) => isLike(pod.daemonSet ?? '', one))) &&
    (os === undefined || os === pod.os) &&
    (beside === undefined || pod.containers.some((other) => other.name === beside))
  );
}

/** A star at the beginning or the end of the pattern matches any text. */
function isLike(text: string, pattern: string): boolean {
  const word = pattern.replace(/^\*/, '').replace(/\*$/, '');
  if (pattern.startsWith('*')) {
    return pattern.endsWith('*') ? text.includes(word) : text.endsWith(word);
  }
  return pattern.endsWith('*') ? text.startsWith(word) : text === word;
}

function describe(provider: Provider, agents: readonly Agent[], objects: ClusterObjects): DetectedProvider {
  const versions = agents.map(agentVersion);
  const others = containersNamed(provider.detect?.argumentsOf, objects.pods);
  const settings = agents.map((agent) => settingsOf(agent, others, objects.configMaps));
  const known = lowest(versions);
  const nodes = agents.flatMap(({ pod }) => pod.node ?? []);
  return {
    name: provider.name,
    ...(known.version === undefined ? versionElsewhere(agents, objects, known) : known),
    settings: commonSettings(settings),
    nodes: [...new Set(nodes)].toSorted(compareStrings),
  };
}

/** Where pods show no version: what the provider’s own object has, else the least that the kubelets of its nodes come with. */
function versionElsewhere(
  agents: readonly Agent[],
  { versions = [], nodes }: ClusterObjects,
  known: Pick<DetectedProvider, 'version' | 'versions'>,
): Pick<DetectedProvider, 'version' | 'versions'> {
  const own = ownVersion(agents, versions);
  const [first] = agents;
  const kubeletVersions = (first?.detect.kubeletVersions ?? []).filter(
    ({ namespace }) => namespace === undefined || agents.every(({ pod }) => pod.namespace === namespace),
  );
  if (own !== undefined || kubeletVersions.length === 0) {
    return own ?? known;
  }
  const names = new Set(agents.map(({ pod }) => pod.node));
  const kubelets = nodes.filter(({ metadata }) => names.has(metadata.name)).map(kubeletVersionOf);
  return kubelets.length === 0 ? known : lowest(kubelets.map((text) => builtInVersion(text, kubeletVersions)));
}

/** The tag of an image with another name may be a version of something else. */
function agentVersion({ detect: { images }, pod, container }: Agent): string | undefined {
  const { name } = imageName(container.image);
  const isKnownImage = images === undefined || images.some((pattern) => isLike(name, pattern));
  return versionOf(versionTexts(pod, isKnownImage ? container : { ...container, image: '' }));
}

/** The version that the provider’s own object has. During a rollout, only some agents have it. */
function ownVersion(
  agents: readonly Agent[],
  objects: readonly KubernetesObject[],
): Pick<DetectedProvider, 'version' | 'versions'> | undefined {
  const [first] = agents;
  const own = first?.detect.object;
  const isRollout = agents.some(({ container }) => container.image !== first?.container.image);
  const found = objects.find(
    ({ apiVersion, kind, metadata }) =>
      apiVersion === own?.apiVersion && kind === own.kind && metadata.name === own.name,
  );
  const text = found === undefined ? '' : textOf(valueAt(found, ...(own?.field.split('.') ?? [])));
  const version = versionOf(text === '' ? [] : [text]);
  return version === undefined || isRollout || parseProviderVersion(version) === undefined
    ? undefined
    : { version, versions: [version] };
}

/** The first text that is a version, else the first one. */
function versionOf(texts: readonly string[]): string | undefined {
  return (texts.find((text) => parseProviderVersion(text) !== undefined) ?? texts[0])?.slice(0, MAX_SETTING);
}

function lowest(versions: readonly (string | undefined)[]): Pick<DetectedProvider, 'version' | 'versions'> {
  const known = [...new Set(versions.filter((version) => version !== undefined))].sort(compareVersions);
  const isKnown = versions.every((version) => version !== undefined && numbersOf(version) !== undefined);
  return { version: isKnown ? known[0] : undefined, versions: known.slice(0, MAX_VERSIONS) };
}

/** Of a version, or of the least that it can be. */
function numbersOf(text: string): ReturnType<typeof parseProviderVersion> {
  return parseProviderVersion(text) ?? leastProviderVersion(text);
}

/** Versions before a release come before it; texts that are no versions come last. */
function compareVersions(one: string, other: string): number {
  const [left, right] = [numbersOf(one), numbersOf(other)];
  if (left === undefined || right === undefined) {
    return Number(left === undefined) - Number(right === undefined) || compareStrings(one, other);
  }
  const byRelease = Number(right.isPrerelease) - Number(left.isPrerelease);
  return compareProviderVersions(left.numbers, right.numbers) || byRelease || compareStrings(one, other);
}

type Settings = ReadonlyMap<string, string>;

/** The settings of one agent that are known. What its ConfigMap and its arguments do not have has its default. */
function settingsOf(
  { provider, detect, pod, container }: Agent,
  others: readonly AgentContainer[],
  configMaps: readonly KubernetesObject[],
): Settings {
  const withArguments = detect.argumentsOf === undefined ? [container] : others;
  const data = detect.configMap === undefined ? undefined : configData(configMaps, pod.namespace, detect.configMap);
  const settings = new Map<string, string>();
  for (const [name, declared] of provider.settings) {
    const value = detect.containers?.includes(name)
      ? presence(pod, name)
      : detect.arguments?.includes(name)
        ? argumentOf(withArguments, name, declared.default)
        : data && (textOf(valueAt(data, name)) || declared.default);
    if (value !== undefined && declared.fixed !== true) {
      settings.set(name, value.slice(0, MAX_SETTING));
    }
  }
  return settings;
}

function containersNamed(name: string | undefined, pods: readonly AgentPod[]): readonly AgentContainer[] {
  return name === undefined ? [] : pods.flatMap(({ containers }) => containers.filter((one) => one.name === name));
}

/** The argument that all containers have. Undefined without containers, and where it differs. */
function argumentOf(containers: readonly AgentContainer[], name: string, preset: string): string | undefined {
  const values = new Set(containers.map((one) => argument(one.arguments, name) ?? preset));
  return values.size === 1 ? [...values][0] : undefined;
}

function configData(
  configMaps: readonly KubernetesObject[],
  namespace: string,
  name: string,
): Readonly<Record<string, unknown>> | undefined {
  const found = configMaps.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
  if (found === undefined) {
    return undefined;
  }
  const data = found['data'];
  return isJsonObject(data) ? data : {};
}

function presence({ containers }: AgentPod, name: string): string {
  return containers.some((container) => container.name === name) ? 'present' : 'absent';
}

/** The value of `--name=value`, `--name value` or `--name`. The last one counts. */
function argument(texts: readonly string[], name: string): string | undefined {
  for (const [index, text] of [...texts.entries()].toReversed()) {
    const [flag, ...value] = text.replace(/^--?/, '').split('=');
    if (flag === name && text.startsWith('-')) {
      const next = texts[index + 1];
      return value.length > 0 ? value.join('=') : next === undefined || next.startsWith('-') ? 'true' : next;
    }
  }
  return undefined;
}

/** The settings that all agents have, with the same value. */
function commonSettings([first = new Map(), ...others]: readonly Settings[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...first].filter(([name, value]) => others.every((settings) => settings.get(name) === value)),
  );
}

/** A provider that is part of the kubelet’s program, whose version decides which one. */
function detectBuiltIn(provider: Provider, nodes: readonly KubernetesObject[]): readonly DetectedProvider[] {
  const { kubelet, kubeletVersions = [], arguments: names = [] } = provider.detect ?? {};
  if (kubelet === undefined) {
    return [];
  }
  const found = nodes.filter((node) => kubeletVersionOf(node).includes(kubelet));
  const servers = found.map(nodeArguments).filter(([command]) => command === 'server');
  const settings = servers.map((texts): Settings => {
    const settingOf = (name: string): string => argument(texts, name) ?? provider.settings.get(name)?.default ?? '';
    return new Map(names.map((name) => [name, settingOf(name)]));
  });
  const nodeNames = found.map(({ metadata }) => metadata.name ?? '').toSorted(compareStrings);
  return found.length === 0
    ? []
    : [
        {
          name: provider.name,
          ...lowest(found.map((node) => builtInVersion(kubeletVersionOf(node), kubeletVersions))),
          settings: commonSettings(settings),
          nodes: nodeNames,
        },
      ];
}

function kubeletVersionOf(node: KubernetesObject): string {
  return textOf(valueAt(node, 'status', 'nodeInfo', 'kubeletVersion'));
}

/** The lowest version that a kubelet of this version may have built in. */
function builtInVersion(text: string, versions: NonNullable<Detection['kubeletVersions']>): string | undefined {
  const kubelet = parseProviderVersion(text);
  return kubelet && versions.find((one) => isInRange(kubelet, one.kubelet))?.version;
}

/** The arguments with which k3s runs on the node. */
function nodeArguments({ metadata }: KubernetesObject): readonly string[] {
  const text = metadata.annotations?.[NODE_ARGUMENTS] ?? '';
  try {
    const parsed = parseJson(text.slice(0, MAX_NODE_ARGUMENTS));
    return Array.isArray(parsed) ? parsed.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

/** Characters of the arguments of a node. */
const MAX_NODE_ARGUMENTS = 16_384;
