import { flag, integer, list, object, record, text } from '../values/json-shape.ts';
import type { Shape, ShapeFault, ValueOf } from '../values/json-shape.ts';
import type { JsonObject } from '../values/json-text.ts';

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
const profile = object({ type: text, localhostProfile: text });
const withDriver = object({ driver: text });
const withHost = object({ host: text });
const handler = object({ httpGet: withHost, tcpSocket: withHost });

/** Fields that containers inherit from their pod. */
const inherited = {
  appArmorProfile: profile,
  runAsGroup: integer,
  runAsNonRoot: flag,
  runAsUser: integer,
  seLinuxOptions: object({ user: text, role: text, type: text, level: text }),
  seccompProfile: profile,
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
    ...inherited,
    allowPrivilegeEscalation: flag,
    capabilities: object({ add: list(text), drop: list(text) }),
    privileged: flag,
    procMount: text,
    readOnlyRootFilesystem: flag,
  }),
  volumeMounts: list(object({ name: text, readOnly: flag, subPath: text, subPathExpr: text })),
});

const volumeSources = Object.fromEntries(
  [...ALLOWED_VOLUMES, ...RESTRICTED_VOLUMES].map((source) => [source, anyObject]),
) as Readonly<Record<VolumeSource, Shape<object>>>;

const volume = object({
  ...volumeSources,
  name: text,
  hostPath: object({ path: text }),
  flexVolume: withDriver,
  csi: withDriver,
  projected: object({ sources: list(anyObject) }),
});

/** The fields of a pod, or of a pod template, that the builtin policies read. */
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
    securityContext: object({
      ...inherited,
      fsGroup: integer,
      supplementalGroups: list(integer),
      sysctls: list(object({ name: text })),
    }),
    volumes: list(volume),
  }),
});

type ContainerSpec = ValueOf<typeof container>;
type PodValue = ValueOf<typeof podShape>;
type PodSpec = NonNullable<PodValue['spec']>;
export type Handler = ValueOf<typeof handler>;
export type Volume = ValueOf<typeof volume>;
export type ContainerSecurity = NonNullable<ContainerSpec['securityContext']>;

/** Fields that both a pod and its containers can set. */
export type SharedSecurity = Pick<ContainerSecurity, keyof typeof inherited>;

/** Something with a security context: the pod itself, or one of its containers. */
export interface Holder {
  readonly isPod: boolean;
  readonly name: string;
  /** Path of its specification: `spec`, `spec.initContainers[0]`. */
  readonly path: string;
  readonly security: SharedSecurity;
}

/** The lists of containers, in the order in which violations name them. */
export const CONTAINER_LISTS = ['initContainers', 'containers', 'ephemeralContainers'] as const;
export type ContainerList = (typeof CONTAINER_LISTS)[number];

/** A container, init container or ephemeral container. */
export class Container implements Holder {
  readonly isPod = false;
  readonly name: string;
  readonly spec: ContainerSpec;
  readonly security: ContainerSecurity;
  readonly #specPath: string;
  readonly #list: ContainerList;
  readonly #index: number;

  constructor(spec: ContainerSpec, specPath: string, list: ContainerList, index: number) {
    this.name = spec.name ?? '';
    this.spec = spec;
    this.security = spec.securityContext ?? {};
    this.#specPath = specPath;
    this.#list = list;
    this.#index = index;
  }

  /** Computed on demand: most containers violate nothing. */
  get path(): string {
    return `${this.#specPath}.${this.#list}[${this.#index}]`;
  }
}

/** A pod, or a pod template, with a valid shape of all that the builtin policies read. */
export class Pod implements Holder {
  readonly isPod = true;
  readonly name = 'pod';
  /** As it came, with the fields that no policy reads. */
  readonly object: JsonObject;
  readonly spec: PodSpec;
  readonly annotations: Readonly<Record<string, string | null>>;
  /** Paths of `metadata` and `spec`. */
  readonly metadataPath: string;
  readonly path: string;
  readonly security: NonNullable<PodSpec['securityContext']>;
  readonly isWindows: boolean;
  /** Init containers, containers and ephemeral containers. */
  readonly containers: readonly Container[];
  /** The pod and its containers. */
  readonly holders: readonly Holder[];

  /** `at` is the pod's path in its object, with a trailing dot: `spec.template.`; empty for a pod itself. */
  constructor(object: JsonObject, spec: PodSpec, at: string) {
    this.object = object;
    this.spec = spec;
    this.annotations = (object as PodValue).metadata?.annotations ?? {};
    this.metadataPath = `${at}metadata`;
    this.path = `${at}spec`;
    this.security = spec.securityContext ?? {};
    this.isWindows = spec.os?.name === 'windows';
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

  /** An annotation; undefined when it is absent or null. */
  annotation(key: string): string | undefined {
    return Object.hasOwn(this.annotations, key) ? (this.annotations[key] ?? undefined) : undefined;
  }
}

/**
 * The pod in `value`, an object with `metadata` and `spec`, or the first mistake in its shape. All fields that the
 * builtin policies read are validated, and `spec` is required. `at` is as for {@link Pod}.
 */
export function readPod(value: unknown, at = ''): Pod | ShapeFault {
  const fault = podShape.faultIn(value);
  if (fault !== undefined) {
    // Paths start with a dot, which `at` has at its end. The path of the whole is empty.
    return { ...fault, path: fault.path === '' ? at.slice(0, -1) || 'object' : `${at}${fault.path.slice(1)}` };
  }
  const { spec } = value as PodValue;
  return spec === null || spec === undefined
    ? { path: `${at}spec`, problem: 'expected an object, got nothing' }
    : new Pod(value as JsonObject, spec, at);
}
