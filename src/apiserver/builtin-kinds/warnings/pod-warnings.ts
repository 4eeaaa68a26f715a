// What API servers warn of in pods and pod templates.
// https://github.com/kubernetes/kubernetes/blob/master/pkg/api/pod/warnings.go
import { type JsonObject, textOf, valueAt } from '../../../values/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import { listAt, type Placed, placedItems } from './fields.ts';
import { deprecatedNodeLabel, nodeSelectorWarnings, nodeTermsWarnings } from './node-label-warnings.ts';
import { fractionalWarnings } from './quantity-warnings.ts';
import { claimSpecWarnings, volumeWarnings } from './storage-warnings.ts';

/** Lists of containers that start in a pod, in the order in which API servers visit them. */
const CONTAINER_LISTS = ['initContainers', 'containers'];
/** Resources whose amounts are bytes. */
const BYTES = ['memory', 'ephemeral-storage'];
const NO_LABEL_SELECTOR = 'labelSelector: a null labelSelector results in matching no pod';

/** Annotations of older versions that fields stand for now. */
const ANNOTATIONS: Readonly<Record<string, string>> = {
  'scheduler.alpha.kubernetes.io/critical-pod': 'non-functional in v1.16+; use the "priorityClassName" field instead',
  'security.alpha.kubernetes.io/sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
  'security.alpha.kubernetes.io/unsafe-sysctls': 'non-functional in v1.11+; use the "sysctls" field instead',
};
const POD_SECCOMP = 'seccomp.security.alpha.kubernetes.io/pod';
const CONTAINER_SECCOMP = 'container.seccomp.security.alpha.kubernetes.io/';
const CONTAINER_APP_ARMOR = 'container.apparmor.security.beta.kubernetes.io/';
const SECCOMP_FIELD = 'non-functional in v1.27+; use the "seccompProfile" field instead';
const APP_ARMOR_FIELD = 'deprecated since v1.30; use the "appArmorProfile" field instead';

/** Of the annotations of a new pod that API servers turn into fields. */
export function appArmorWarnings(pod: unknown): readonly string[] {
  return containersOf(valueAt(pod, 'spec'), 'spec').flatMap(({ value }) => appArmorWarning(pod, value, ''));
}

/** @param prefix of fields: that of a pod template; empty for a pod */
export function podWarnings(pod: unknown, prefix = ''): readonly string[] {
  const spec = valueAt(pod, 'spec');
  if (!isJsonObject(spec)) {
    return [];
  }
  const path = `${prefix}spec`;
  const containers = containersOf(spec, path);
  return [
    ...nodeSelectorWarnings(spec['nodeSelector'], `${path}.nodeSelector`),
    ...nodeAffinityWarnings(valueAt(spec, 'affinity', 'nodeAffinity'), `${path}.affinity.nodeAffinity`),
    ...spreadWarnings(placedItems(spec['topologySpreadConstraints'], `${path}.topologySpreadConstraints`)),
    ...annotationWarnings(pod, prefix),
    ...placedItems(spec['volumes'], `${path}.volumes`).flatMap(ofVolume),
    ...duplicates(placedItems(spec['hostAliases'], `${path}.hostAliases`), 'ip'),
    ...pullSecretWarnings(placedItems(spec['imagePullSecrets'], `${path}.imagePullSecrets`)),
    ...fractionalWarnings(spec['overhead'], `${path}.overhead`, BYTES),
    ...podSeccompWarnings(pod, prefix),
    ...containers.flatMap((container) => containerWarnings(pod, container, prefix)),
    ...portWarnings(containers.flatMap(({ path: field, value }) => placedItems(value['ports'], `${field}.ports`))),
    ...(isTemplate(prefix) && Number(spec['terminationGracePeriodSeconds']) < 0
      ? [`${path}.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1`]
      : []),
    ...['podAffinity', 'podAntiAffinity'].flatMap((name) =>
      podAffinityWarnings(valueAt(spec, 'affinity', name), `${path}.affinity.${name}`),
    ),
  ];
}

function isTemplate(prefix: string): boolean {
  return prefix !== '';
}

function containersOf(spec: unknown, path: string): readonly Placed[] {
  return CONTAINER_LISTS.flatMap((list) => placedItems(valueAt(spec, list), `${path}.${list}`));
}

function nodeAffinityWarnings(affinity: unknown, path: string): readonly string[] {
  const required = ['requiredDuringSchedulingIgnoredDuringExecution', 'nodeSelectorTerms'];
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  return [
    ...nodeTermsWarnings(listAt(affinity, ...required), (index) => `${path}.${required.join('.')}[${index}]`),
    ...nodeTermsWarnings(
      listAt(affinity, preferred).map((term) => valueAt(term, 'preference')),
      (index) => `${path}.${preferred}[${index}].preference`,
    ),
  ];
}

function podAffinityWarnings(affinity: unknown, path: string): readonly string[] {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  return [
    ...placedItems(valueAt(affinity, required), `${path}.${required}`).flatMap(({ path: field, value }) =>
      value['labelSelector'] === undefined ? [`${field}.${NO_LABEL_SELECTOR}`] : [],
    ),
    ...placedItems(valueAt(affinity, preferred), `${path}.${preferred}`).flatMap(({ path: field, value }) =>
      valueAt(value, 'podAffinityTerm', 'labelSelector') === undefined
        ? [`${field}.podAffinityTerm.${NO_LABEL_SELECTOR}`]
        : [],
    ),
  ];
}

function spreadWarnings(constraints: readonly Placed[]): readonly string[] {
  return constraints.flatMap(({ path, value }) => {
    const advice = deprecatedNodeLabel(value['topologyKey']);
    return [
      ...(advice === undefined ? [] : [`${path}.topologyKey: ${textOf(value['topologyKey'])} is ${advice}`]),
      ...(value['labelSelector'] === undefined ? [`${path}.${NO_LABEL_SELECTOR}`] : []),
    ];
  });
}

function annotationWarnings(pod: unknown, prefix: string): readonly string[] {
  return Object.entries(ANNOTATIONS).flatMap(([key, text]) => annotationWarning(pod, key, text, prefix));
}

function annotationWarning(pod: unknown, key: string, text: string, prefix: string): readonly string[] {
  return valueAt(pod, 'metadata', 'annotations', key) === undefined
    ? []
    : [`${prefix}metadata.annotations[${key}]: ${text}`];
}

function podSeccompWarnings(pod: unknown, prefix: string): readonly string[] {
  const hasField = valueAt(pod, 'spec', 'securityContext', 'seccompProfile') !== undefined;
  return hasField ? [] : annotationWarning(pod, POD_SECCOMP, SECCOMP_FIELD, prefix);
}

function appArmorWarning(pod: unknown, container: JsonObject, prefix: string): readonly string[] {
  const hasField =
    valueAt(pod, 'spec', 'securityContext', 'appArmorProfile') !== undefined ||
    valueAt(container, 'securityContext', 'appArmorProfile') !== undefined;
  return hasField
    ? []
    : annotationWarning(pod, `${CONTAINER_APP_ARMOR}${textOf(container['name'])}`, APP_ARMOR_FIELD, prefix);
}

function ofVolume({ path, value }: Placed): readonly string[] {
  const claim = ['ephemeral', 'volumeClaimTemplate', 'spec'];
  return [...volumeWarnings(value, path), ...claimSpecWarnings(valueAt(value, ...claim), `${path}.${claim.join('.')}`)];
}

function pullSecretWarnings(secrets: readonly Placed[]): readonly string[] {
  return [
    ...duplicates(secrets, 'name'),
    ...secrets.flatMap(({ path, value }) =>
      textOf(value['name']) === '' ? [`${path}.name: invalid empty name ""`] : [],
    ),
  ];
}

/** Items whose key an earlier one has. */
function duplicates(items: readonly Placed[], key: string): readonly string[] {
  const seen = new Set<string>();
  return items.flatMap(({ path, value }) => {
    const text = textOf(value[key]);
    const isKnown = seen.has(text);
    seen.add(text);
    return isKnown ? [`${path}.${key}: duplicate ${key} ${JSON.stringify(text)}`] : [];
  });
}

function containerWarnings(pod: unknown, { path, value }: Placed, prefix: string): readonly string[] {
  const hasSeccomp = valueAt(value, 'securityContext', 'seccompProfile') !== undefined;
  const key = `${CONTAINER_SECCOMP}${textOf(value['name'])}`;
  return [
    ...(hasSeccomp ? [] : annotationWarning(pod, key, SECCOMP_FIELD, prefix)),
    ...(isTemplate(prefix) ? appArmorWarning(pod, value, prefix) : []),
    ...BYTES.flatMap((name) =>
      ['limits', 'requests'].flatMap((kind) =>
        fractionalWarnings(valueAt(value, 'resources', kind), `${path}.resources.${kind}`, [name]),
      ),
    ),
    ...environmentWarnings(placedItems(value['env'], `${path}.env`)),
  ];
}

/** A variable with the name of an earlier one, unless its value uses the earlier one. */
function environmentWarnings(variables: readonly Placed[]): readonly string[] {
  const names = new Set<string>();
  return variables.flatMap(({ path, value }) => {
    const name = textOf(value['name']);
    if (!names.has(name)) {
      names.add(name);
      return [];
    }
    const reference = `$(${name})`;
    const text = textOf(value['value']);
    const usesEarlier = value['valueFrom'] === undefined && text !== reference && text.includes(reference);
    return usesEarlier
      ? []
      : [`${path}: hides previous definition of ${JSON.stringify(name)}, which may be dropped when using apply`];
  });
}

/** Ports of a pod that are defined twice, or that differ in what the node makes of them only; then names that occur twice. */
function portWarnings(ports: readonly Placed[]): readonly string[] {
  const byName = new Map<string, string>();
  return [
    ...ports.flatMap((port, index) => [
      ...addressWithoutPort(port),
      ...ports.slice(0, index).flatMap((earlier) => {
        const kind = portConflict(port.value, earlier.value);
        return kind === undefined ? [] : [`${port.path}: ${kind} port definition with ${earlier.path}`];
      }),
    ]),
    ...ports.flatMap(({ path, value }) => {
      const name = textOf(value['name']);
      const earlier = byName.get(name);
      byName.set(name, earlier ?? path);
      return name === '' || earlier === undefined
        ? []
        : [
            `${path}: duplicate port name ${JSON.stringify(name)} with ${earlier}, services and probes that select ports by name will use ${earlier}`,
          ];
    }),
  ];
}

/** In the words of API servers, which print the port as a struct of Go. */
function addressWithoutPort({ path, value }: Placed): readonly string[] {
  const { name = '', hostIP = '', containerPort, protocol } = value;
  return textOf(hostIP) === '' || Number(value['hostPort'] ?? 0) !== 0
    ? []
    : [
        `${path}: hostIP set without hostPort: {Name:${textOf(name)} HostPort:0 ContainerPort:${Number(containerPort)} Protocol:${textOf(protocol)} HostIP:${textOf(hostIP)}}`,
      ];
}

function portConflict(
  one: JsonObject,
  other: JsonObject,
): 'duplicate' | 'overlapping' | 'dangerously ambiguous' | undefined {
  if (one['containerPort'] !== other['containerPort'] || one['protocol'] !== other['protocol']) {
    return undefined;
  }
  const [onePort, otherPort] = [one['hostPort'] ?? 0, other['hostPort'] ?? 0];
  const [oneIp, otherIp] = [textOf(one['hostIP']), textOf(other['hostIP'])];
  if (onePort === otherPort && oneIp === otherIp) {
    return 'duplicate';
  }
  if (onePort === 0 || otherPort === 0) {
    return 'overlapping';
  }
  return onePort === otherPort && (oneIp === '') !== (otherIp === '') ? 'dangerously ambiguous' : undefined;
}
