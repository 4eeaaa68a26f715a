import type { PodSecurityCheck, PodSecurityFinding, CheckPod } from './check.ts';
import { ALLOWED_VOLUMES, RESTRICTED_VOLUMES } from '../../pods/pod.ts';
import type { Container, Handler, Pod, Volume } from '../../pods/pod.ts';
import { containerNames, namedContainers, plural, quoted, sortedSet } from './wording.ts';

/** Namespaced sysctls that isolate pods from each other, by the version since which they are safe. */
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

/** The sysctls that are safe in the newest version. */
export const NEWEST_SAFE_SYSCTLS: ReadonlySet<string> = new Set(SAFE_SYSCTLS.flatMap(([, names]) => names));

/**
 * Checks of resources that a pod shares with its node: namespaces, ports, volumes, sysctls, and hosts that the kubelet
 * connects to.
 */
export const HOST_CHECKS: readonly PodSecurityCheck[] = [
  { id: 'hostNamespaces', level: 'baseline', revisions: [{ since: 0, check: hostNamespaces }] },
  { id: 'hostPathVolumes', level: 'baseline', revisions: [{ since: 0, check: hostPathVolumes }] },
  { id: 'hostPorts', level: 'baseline', revisions: [{ since: 0, check: hostPorts }] },
  { id: 'hostProbesAndHostLifecycle', level: 'baseline', revisions: [{ since: 34, check: hostOfHandlers }] },
  {
    id: 'restrictedVolumes',
    level: 'restricted',
    revisions: [{ since: 0, check: restrictedVolumes, overrides: ['hostPathVolumes'] }],
  },
  {
    id: 'sysctls',
    level: 'baseline',
    revisions: [
      { since: 0, check: sysctlsSafeIn(0) },
      { since: 27, check: sysctlsSafeIn(27) },
      { since: 29, check: sysctlsSafeIn(29) },
      { since: 32, check: sysctlsSafeIn(32) },
      { since: 37, check: sysctlsSafeIn(37) },
    ],
  },
];

function hostNamespaces({ spec, path }: Pod): PodSecurityFinding | undefined {
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

/** Volumes with their index in the pod's list. */
function volumesThat(isBad: (volume: Volume) => boolean, { spec }: Pod): readonly (readonly [number, Volume])[] {
  return (spec.volumes ?? []).flatMap((volume, index) => (isBad(volume) ? [[index, volume] as const] : []));
}

function hasSource(volume: Volume, source: keyof Volume): boolean {
  return volume[source] !== null && volume[source] !== undefined;
}

function hostPathVolumes(pod: Pod): PodSecurityFinding | undefined {
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

/** API servers ensure that a volume has one source. A volume with an additional restricted source is not allowed. */
function isAllowed(volume: Volume): boolean {
  const isRestricted = RESTRICTED_VOLUMES.some((source) => hasSource(volume, source));
  return !isRestricted && (ALLOWED_VOLUMES.some((source) => hasSource(volume, source)) || isSourceless(volume));
}

/**
 * An API server defaults a volume without a source to emptyDir, which manifests in files lack. An unknown source counts
 * as a source.
 */
function isSourceless(volume: Readonly<Record<string, unknown>>): boolean {
  return Object.keys(volume).every((key) => key === 'name' || volume[key] === null);
}

function restrictedVolumes(pod: Pod): PodSecurityFinding | undefined {
  const bad = volumesThat((volume) => !isAllowed(volume), pod);
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

function hostPorts({ containers }: Pod): PodSecurityFinding | undefined {
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

/** The kubelet, in the node's network, would connect to any host of a probe or hook. */
function hostOfHandlers({ containers }: Pod): PodSecurityFinding | undefined {
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

/** Hosts in the probes and hooks of a container, with their paths. */
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

function sysctlsSafeIn(version: number): CheckPod {
  const safe = new Set(SAFE_SYSCTLS.filter(([since]) => since <= version).flatMap(([, names]) => names));
  return ({ security, path }) => {
    const bad = (security.sysctls ?? []).flatMap(({ name }, index) =>
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
