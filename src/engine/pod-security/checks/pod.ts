import { flag, integer, list, object, record, text } from '../../values/json-shape.ts';
import type { Shape, ShapeFault, ValueOf } from '../../values/json-shape.ts';

/** Volume sources that every level allows. */
export const ALLOWED_VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
] as const;

/** Volume sources that restricted forbids. A volume with several is reported by the first. */
export const RESTRICTED_VOLUMES = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'gitRepo',
  'nfs',
  'iscsi',
  'glusterfs',
  'rbd',
  'flexVolume',
  'cinder',
  'cephfs',
  'flocker',
  'fc',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'storageos',
] as const;

type VolumeSource = (typeof ALLOWED_VOLUMES | typeof RESTRICTED_VOLUMES)[number];

const anyObject = object({});
const typed = object({ type: text });
const withHost = object({ host: text });
const handler = object({ httpGet: withHost, tcpSocket: withHost });

/** Fields common to the security contexts of pods and containers. */
const common = {
  appArmorProfile: typed,
  runAsNonRoot: flag,
  runAsUser: integer,
  seLinuxOptions: object({ type: text, user: text, role: text }),
  seccompProfile: typed,
  windowsOptions: object({ hostProcess: flag }),
};

const container = object({
  name: text,
  image: text,
  lifecycle: object({ postStart: handler, preStop: handler }),
  livenessProbe: handler,
  readinessProbe: handler,
  startupProbe: handler,
  ports: list(object({ hostPort: integer })),
  securityContext: object({
    ...common,
    allowPrivilegeEscalation: flag,
    capabilities: object({ add: list(text), drop: list(text) }),
    privileged: flag,
    procMount: text,
  }),
});

const volumeSources = Object.fromEntries(
  [...ALLOWED_VOLUMES, ...RESTRICTED_VOLUMES].map((source) => [source, anyObject]),
) as Readonly<Record<VolumeSource, Shape<object>>>;

/** The fields of a pod, or of a pod template, that the standards read. */
const podShape = object({
  metadata: object({ annotations: record(text) }),
  spec: object({
    containers: list(container),
    ephemeralContainers: list(container),
    hostIPC: flag,
    hostNetwork: flag,
    hostPID: flag,
    hostUsers: flag,
    initContainers: list(container),
    os: object({ name: text }),
    runtimeClassName: text,
    securityContext: object({ ...common, sysctls: list(object({ name: text })) }),
    volumes: list(object({ ...volumeSources, name: text })),
  }),
});

type ContainerSpec = ValueOf<typeof container>;
type PodValue = ValueOf<typeof podShape>;
export type PodSpec = NonNullable<PodValue['spec']>;
export type Handler = ValueOf<typeof handler>;
export type Volume = NonNullable<PodSpec['volumes']>[number];
export type ContainerSecurity = NonNullable<ContainerSpec['securityContext']>;

/** Fields that both a pod and its containers can set. */
export type SharedSecurity = Pick<ContainerSecurity, keyof typeof common>;

/** Something with a security context: the pod itself, or one of its containers. */
export interface Holder {
  readonly isPod: boolean;
  readonly name: string;
  /** Path of its specification: `spec`, `spec.initContainers[0]`. */
  readonly path: string;
  readonly security: SharedSecurity | undefined;
}

type ContainerList = 'initContainers' | 'containers' | 'ephemeralContainers';
/** The order in which violations name containers. */
const CONTAINER_LISTS: readonly ContainerList[] = ['initContainers', 'containers', 'ephemeralContainers'];

/** A container, init container or ephemeral container. */
export class Container implements Holder {
  readonly isPod = false;
  readonly name: string;
  readonly spec: ContainerSpec;
  readonly security: ContainerSecurity | undefined;
  readonly #specPath: string;
  readonly #list: ContainerList;
  readonly #index: number;

  constructor(spec: ContainerSpec, specPath: string, list: ContainerList, index: number) {
    this.name = spec.name ?? '';
    this.spec = spec;
    this.security = spec.securityContext ?? undefined;
    this.#specPath = specPath;
    this.#list = list;
    this.#index = index;
  }

  /** Computed on demand: most containers violate nothing. */
  get path(): string {
    return `${this.#specPath}.${this.#list}[${this.#index}]`;
  }
}

/** A pod, or a pod template, with the valid shape that the standards read. */
export class Pod implements Holder {
  readonly isPod = true;
  readonly name = 'pod';
  readonly spec: PodSpec;
  readonly annotations: Readonly<Record<string, string | null>>;
  /** Paths of `metadata` and `spec`. */
  readonly metadataPath: string;
  readonly path: string;
  readonly security: (PodSpec['securityContext'] & {}) | undefined;
  /** Init containers, containers and ephemeral containers. */
  readonly containers: readonly Container[];
  /** The pod and its containers. */
  readonly holders: readonly Holder[];

  /** `at` is the pod's path in its object, with a trailing dot: `spec.template.`; empty for a pod itself. */
  constructor(metadata: PodValue['metadata'], spec: PodSpec, at: string) {
    this.spec = spec;
    this.annotations = metadata?.annotations ?? {};
    this.metadataPath = `${at}metadata`;
    this.path = `${at}spec`;
    this.security = spec.securityContext ?? undefined;
    const containers: Container[] = [];
    for (const name of CONTAINER_LISTS) {
      const specs = spec[name] ?? [];
      for (let index = 0; index < specs.length; index++) {
        containers.push(new Container(specs[index] ?? {}, this.path, name, index));
      }
    }
    this.containers = containers;
    this.holders = [this, ...containers];
  }
}

/**
 * The pod in `value`, an object with `metadata` and `spec`, or the first mistake in its shape. All fields that the
 * standards read are validated, and `spec` is required. `at` is as for {@link Pod}.
 */
export function readPod(value: unknown, at: string): Pod | ShapeFault {
  const fault = podShape.faultIn(value);
  if (fault !== undefined) {
    // Paths start with a dot, which `at` has at its end. The path of the whole is empty.
    return { ...fault, path: fault.path === '' ? at.slice(0, -1) || 'object' : `${at}${fault.path.slice(1)}` };
  }
  const { metadata, spec } = value as PodValue;
  return spec === null || spec === undefined
    ? { path: `${at}spec`, problem: 'expected an object, got nothing' }
    : new Pod(metadata, spec, at);
}
