import { isJsonObject } from '../../../resources/index.ts';

/** Lists of containers that start in a pod, in the order in which API servers visit them. */
const CONTAINER_LISTS = ['initContainers', 'containers'];

/** Labels of nodes that have another name now. */
const NODE_LABELS: Readonly<Record<string, string>> = {
  'beta.kubernetes.io/arch': 'deprecated since v1.14; use "kubernetes.io/arch" instead',
  'beta.kubernetes.io/os': 'deprecated since v1.14; use "kubernetes.io/os" instead',
  'failure-domain.beta.kubernetes.io/region': 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
  'failure-domain.beta.kubernetes.io/zone': 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
  'beta.kubernetes.io/instance-type': 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
};

type Fields = Readonly<Record<string, unknown>>;

interface Placed {
  readonly path: string;
  readonly value: Fields;
}

/** What API servers warn of in the spec of a pod, at this path. */
export function podWarnings(spec: unknown, path: string): readonly string[] {
  if (!isJsonObject(spec)) {
    return [];
  }
  const containers = CONTAINER_LISTS.flatMap((list) => placedItems(spec[list], `${path}.${list}`));
  return [
    ...nodeSelectorWarnings(spec['nodeSelector'], `${path}.nodeSelector`),
    ...placedItems(spec['imagePullSecrets'], `${path}.imagePullSecrets`).flatMap(({ path: at, value }) =>
      textOf(value['name']) === '' ? [`${at}.name: invalid empty name ""`] : [],
    ),
    ...containers.flatMap(({ path: at, value }) => environmentWarnings(placedItems(value['env'], `${at}.env`))),
    ...portWarnings(containers.flatMap(({ path: at, value }) => placedItems(value['ports'], `${at}.ports`))),
  ];
}

function nodeSelectorWarnings(selector: unknown, path: string): readonly string[] {
  return isJsonObject(selector)
    ? Object.entries(NODE_LABELS).flatMap(([label, advice]) =>
        Object.hasOwn(selector, label) ? [`${path}[${label}]: ${advice}`] : [],
      )
    : [];
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
    ...ports.flatMap((port, index) =>
      ports.slice(0, index).flatMap((earlier) => {
        const kind = portConflict(port.value, earlier.value);
        return kind === undefined ? [] : [`${port.path}: ${kind} port definition with ${earlier.path}`];
      }),
    ),
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

function portConflict(one: Fields, other: Fields): 'duplicate' | 'overlapping' | 'dangerously ambiguous' | undefined {
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

function placedItems(list: unknown, path: string): readonly Placed[] {
  return Array.isArray(list)
    ? list.flatMap((value, index) => (isJsonObject(value) ? [{ path: `${path}[${index}]`, value }] : []))
    : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
