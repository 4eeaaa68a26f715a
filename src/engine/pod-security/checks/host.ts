import type { Check, Finding, Judge } from '../check.ts';
import { HARMLESS_VOLUMES, RESTRICTED_VOLUMES } from '../pod.ts';
import type { Container, Handler, Pod, Volume } from '../pod.ts';
import { containerNames, namedContainers, plural, quoted, sortedSet } from '../wording.ts';

/** Namespaced sysctls that isolate pods from each other, by the version from which on they count as safe. */
const SAFE_SYSCTLS: readonly (readonly [since: number, names: readonly string[]])[] = [
  [
    0,
    [
      'kernel.shm_rmid_forced',
      'net.ipv4.ip_local_port_range',
      'net.ipv4.tcp_syncookies',
      'net.ipv4.ping_group_range',
      'net.ipv4.ip_unprivileged_port_start',
    ],
  ],
  [27, ['net.ipv4.ip_local_reserved_ports']],
  [
    29,
    [
      'net.ipv4.tcp_keepalive_time',
      'net.ipv4.tcp_fin_timeout',
      'net.ipv4.tcp_keepalive_intvl',
      'net.ipv4.tcp_keepalive_probes',
    ],
  ],
  [32, ['net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem']],
  [37, ['net.ipv4.tcp_slow_start_after_idle', 'net.ipv4.tcp_notsent_lowat']],
];

/** Checks of what a pod shares with its node: namespaces, ports, volumes, sysctls, and whom the kubelet calls for it. */
export const HOST_CHECKS: readonly Check[] = [
  { id: 'hostNamespaces', level: 'baseline', revisions: [{ since: 0, judge: hostNamespaces }] },
  { id: 'hostPathVolumes', level: 'baseline', revisions: [{ since: 0, judge: hostPathVolumes }] },
  { id: 'hostPorts', level: 'baseline', revisions: [{ since: 0, judge: hostPorts }] },
  { id: 'hostProbesAndHostLifecycle', level: 'baseline', revisions: [{ since: 34, judge: hostOfHandlers }] },
  {
    id: 'restrictedVolumes',
    level: 'restricted',
    revisions: [{ since: 0, judge: restrictedVolumes, overrides: ['hostPathVolumes'] }],
  },
  {
    id: 'sysctls',
    level: 'baseline',
    revisions: [
      { since: 0, judge: sysctlsSafeIn(0) },
      { since: 27, judge: sysctlsSafeIn(27) },
      { since: 29, judge: sysctlsSafeIn(29) },
      { since: 32, judge: sysctlsSafeIn(32) },
      { since: 37, judge: sysctlsSafeIn(37) },
    ],
  },
];

function hostNamespaces({ spec, path }: Pod): Finding | undefined {
  if (spec.hostNetwork !== true && spec.hostPID !== true && spec.hostIPC !== true) {
    return undefined;
  }
  const shared = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter((field) => spec[field] === true);
  return {
    reason: 'host namespaces',
    detail: shared.map((field) => `${field}=true`).join(', '),
    containers: [],
    fields: shared.map((field) => `${path}.${field}`),
  };
}

/** Volumes with their place in the list of the pod. */
function volumesThat(isBad: (volume: Volume) => boolean, { spec }: Pod): readonly (readonly [number, Volume])[] {
  return (spec.volumes ?? []).flatMap((volume, index) => (isBad(volume) ? [[index, volume] as const] : []));
}

function hasSource(volume: Volume, source: keyof Volume): boolean {
  return volume[source] !== null && volume[source] !== undefined;
}

function hostPathVolumes(pod: Pod): Finding | undefined {
  const bad = volumesThat((volume) => hasSource(volume, 'hostPath'), pod);
  if (bad.length === 0) {
    return undefined;
  }
  const names = bad.map(([, { name }]) => name ?? '');
  return {
    reason: 'hostPath volumes',
    detail: `${plural(names, 'volume', 'volumes')} ${quoted(names)}`,
    containers: [],
    fields: bad.map(([index]) => `${pod.path}.volumes[${index}].hostPath`),
  };
}

/** A volume has one source, which the API server sees to; one with two is not passed for the harmless one. */
function isHarmless(volume: Volume): boolean {
  const isRestricted = RESTRICTED_VOLUMES.some((source) => hasSource(volume, source));
  return !isRestricted && (HARMLESS_VOLUMES.some((source) => hasSource(volume, source)) || isSourceless(volume));
}

/** The API server makes an emptyDir of it, which manifests in files do not have yet. A source unknown here is one. */
function isSourceless(volume: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(volume).every((key) => key === 'name' || volume[key] === null);
}

function restrictedVolumes(pod: Pod): Finding | undefined {
  const bad = volumesThat((volume) => !isHarmless(volume), pod);
  if (bad.length === 0) {
    return undefined;
  }
  const sourceOf = (volume: Volume): string | undefined =>
    RESTRICTED_VOLUMES.find((source) => hasSource(volume, source));
  const names = bad.map(([, { name }]) => name ?? '');
  const sources = sortedSet(bad.map(([, volume]) => sourceOf(volume) ?? 'unknown'));
  const volumes = `${plural(names, 'volume', 'volumes')} ${quoted(names)} ${plural(names, 'uses', 'use')}`;
  return {
    reason: 'restricted volume types',
    detail: `${volumes} ${plural(sources, 'restricted volume type', 'restricted volume types')} ${quoted(sources)}`,
    containers: [],
    fields: bad.map(([index, volume]) => {
      const source = sourceOf(volume);
      return `${pod.path}.volumes[${index}]${source === undefined ? '' : `.${source}`}`;
    }),
  };
}

function hostPorts({ containers }: Pod): Finding | undefined {
  const bad = containers.filter(({ spec }) => spec.ports?.some(({ hostPort }) => (hostPort ?? 0) !== 0) === true);
  if (bad.length === 0) {
    return undefined;
  }
  const names = containerNames(bad);
  const uses = bad.flatMap((container) =>
    (container.spec.ports ?? []).flatMap(({ hostPort }, index) =>
      (hostPort ?? 0) === 0 ? [] : [{ port: String(hostPort), field: `${container.path}.ports[${index}].hostPort` }],
    ),
  );
  const ports = sortedSet(uses.map(({ port }) => port));
  return {
    reason: 'hostPort',
    detail: `${namedContainers(names)} ${plural(names, 'uses', 'use')} ${plural(ports, 'hostPort', 'hostPorts')} ${ports.join(', ')}`,
    containers: names,
    fields: uses.map(({ field }) => field),
  };
}

/** The kubelet, which is in the node's network, would call any host that a probe or hook names. */
function hostOfHandlers({ containers }: Pod): Finding | undefined {
  const bad = containers.filter(namesHost);
  if (bad.length === 0) {
    return undefined;
  }
  const uses = bad.flatMap(hostsOf);
  const names = sortedSet(containerNames(bad));
  const hosts = sortedSet(uses.map(({ host }) => host));
  const noun = plural(hosts, 'probe or lifecycle host', 'probe or lifecycle hosts');
  return {
    reason: 'probe or lifecycle host',
    detail: `${namedContainers(names)} ${plural(names, 'uses', 'use')} ${noun} ${quoted(hosts)}`,
    containers: names,
    fields: uses.map(({ field }) => field),
  };
}

function namesHost({ spec: { livenessProbe, readinessProbe, startupProbe, lifecycle } }: Container): boolean {
  return (
    hasHost(livenessProbe) ||
    hasHost(readinessProbe) ||
    hasHost(startupProbe) ||
    hasHost(lifecycle?.postStart) ||
    hasHost(lifecycle?.preStop)
  );
}

function hasHost(handler: Handler | null | undefined): boolean {
  return (handler?.httpGet?.host ?? '') !== '' || (handler?.tcpSocket?.host ?? '') !== '';
}

/** Hosts that the probes and hooks of a container name, and where. */
function hostsOf(container: Container): readonly { readonly host: string; readonly field: string }[] {
  const { livenessProbe, readinessProbe, startupProbe, lifecycle } = container.spec;
  const handlers = {
    livenessProbe,
    readinessProbe,
    startupProbe,
    'lifecycle.postStart': lifecycle?.postStart,
    'lifecycle.preStop': lifecycle?.preStop,
  };
  return Object.entries(handlers).flatMap(([name, handler]) =>
    (['httpGet', 'tcpSocket'] as const).flatMap((action) => {
      const host = handler?.[action]?.host ?? '';
      return host === '' ? [] : [{ host, field: `${container.path}.${name}.${action}.host` }];
    }),
  );
}

function sysctlsSafeIn(version: number): Judge {
  const safe = new Set(SAFE_SYSCTLS.filter(([since]) => since <= version).flatMap(([, names]) => names));
  return ({ security, path }) => {
    const bad = (security?.sysctls ?? []).flatMap(({ name }, index) =>
      safe.has(name ?? '') ? [] : [{ name: name ?? '', index }],
    );
    return bad.length === 0
      ? undefined
      : {
          reason: 'forbidden sysctls',
          detail: bad.map(({ name }) => name).join(', '),
          containers: [],
          fields: bad.map(({ index }) => `${path}.securityContext.sysctls[${index}].name`),
        };
  };
}
