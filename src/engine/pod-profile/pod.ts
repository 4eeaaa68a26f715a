import { flag, integer, list, object, record, text } from '../values/json-shape.ts';
import type { JsonObject } from '../values/json-text.ts';
import type { ShapeFault, ValueOf } from '../values/json-shape.ts';

const profile = object({ type: text, localhostProfile: text });

/** Fields that containers inherit from their pod. */
const inherited = {
  runAsUser: integer,
  runAsGroup: integer,
  runAsNonRoot: flag,
  seLinuxOptions: object({ user: text, role: text, type: text, level: text }),
  seccompProfile: profile,
  appArmorProfile: profile,
  windowsOptions: object({ hostProcess: flag }),
};

const container = object({
  name: text,
  ports: list(object({ hostPort: integer })),
  volumeMounts: list(object({ name: text, readOnly: flag, subPath: text, subPathExpr: text })),
  securityContext: object({
    ...inherited,
    allowPrivilegeEscalation: flag,
    capabilities: object({ add: list(text), drop: list(text) }),
    privileged: flag,
    procMount: text,
    readOnlyRootFilesystem: flag,
  }),
});

const volume = object({
  name: text,
  hostPath: object({ path: text }),
  flexVolume: object({ driver: text }),
  csi: object({ driver: text }),
  projected: object({ sources: list(object({})) }),
});

/** The fields of a pod that a profile reads. */
const podShape = object({
  metadata: object({ annotations: record(text) }),
  spec: object({
    containers: list(container),
    ephemeralContainers: list(container),
    hostIPC: flag,
    hostNetwork: flag,
    hostPID: flag,
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

type PodValue = ValueOf<typeof podShape>;
type PodSpec = NonNullable<PodValue['spec']>;
type ContainerSpec = ValueOf<typeof container>;
export type ProfileVolume = ValueOf<typeof volume>;
export type PodSecurity = NonNullable<PodSpec['securityContext']>;
export type ProfileContainerSecurity = NonNullable<ContainerSpec['securityContext']>;
/** What a pod and its containers can set. */
export type ProfileSharedSecurity = Pick<ProfileContainerSecurity, keyof typeof inherited>;

/** The lists of containers, in the order in which violations are reported. */
export const CONTAINER_LISTS = ['initContainers', 'containers', 'ephemeralContainers'] as const;

/** A container of any list. */
export interface ProfileContainer {
  readonly name: string;
  /** `spec.initContainers[0]`. */
  readonly path: string;
  readonly spec: ContainerSpec;
  readonly security: ProfileContainerSecurity;
}

/** A pod with a valid shape of all that a profile reads. */
export class ProfilePod {
  readonly object: JsonObject;
  readonly spec: PodSpec;
  readonly security: PodSecurity;
  readonly annotations: Readonly<Record<string, string | null>>;
  readonly isWindows: boolean;
  readonly containers: readonly ProfileContainer[];

  constructor(object: JsonObject, spec: PodSpec, annotations: Readonly<Record<string, string | null>>) {
    this.object = object;
    this.spec = spec;
    this.security = spec.securityContext ?? {};
    this.annotations = annotations;
    this.isWindows = spec.os?.name === 'windows';
    this.containers = CONTAINER_LISTS.flatMap((list) =>
      (spec[list] ?? []).map((one, index) => ({
        name: one.name ?? '',
        path: `spec.${list}[${index}]`,
        spec: one,
        security: one.securityContext ?? {},
      })),
    );
  }

  /** An annotation; undefined when it is absent or null. */
  annotation(key: string): string | undefined {
    return Object.hasOwn(this.annotations, key) ? (this.annotations[key] ?? undefined) : undefined;
  }
}

/** The pod in an object, or the first mistake in its shape. `spec` is required. */
export function readProfilePod(value: unknown): ProfilePod | ShapeFault {
  const fault = podShape.faultIn(value);
  if (fault !== undefined) {
    // Paths of shapes start with a dot; that of the whole is empty.
    return { ...fault, path: fault.path.slice(1) || 'object' };
  }
  const { metadata, spec } = value as PodValue;
  return spec === null || spec === undefined
    ? { path: 'spec', problem: 'expected an object, got nothing' }
    : new ProfilePod(value as JsonObject, spec, metadata?.annotations ?? {});
}
