// The fields of Pods that the node for tests supports.
import type { KubernetesObject } from '../../../src/resources/index.ts';

export interface HttpGetAction {
  readonly path?: string;
  readonly port: number | string;
  readonly scheme?: string;
}

export interface ProbeSpec {
  readonly httpGet?: HttpGetAction;
  readonly initialDelaySeconds?: number;
  readonly periodSeconds?: number;
  readonly timeoutSeconds?: number;
  readonly successThreshold?: number;
  readonly failureThreshold?: number;
}

export interface EnvironmentVariable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly fieldRef?: { readonly fieldPath: string };
    readonly resourceFieldRef?: { readonly resource: string; readonly divisor?: string };
    readonly secretKeyRef?: { readonly name: string; readonly key: string; readonly optional?: boolean };
    readonly configMapKeyRef?: { readonly name: string; readonly key: string; readonly optional?: boolean };
  };
}

export interface VolumeMount {
  readonly name: string;
  readonly mountPath: string;
  readonly subPath?: string;
}

export interface ContainerSpec {
  readonly name: string;
  readonly image: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly EnvironmentVariable[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[];
  readonly volumeMounts?: readonly VolumeMount[];
  readonly readinessProbe?: ProbeSpec;
  readonly livenessProbe?: ProbeSpec;
  readonly startupProbe?: ProbeSpec;
  readonly lifecycle?: { readonly preStop?: { readonly sleep?: { readonly seconds: number } } };
  readonly securityContext?: {
    readonly readOnlyRootFilesystem?: boolean;
    readonly allowPrivilegeEscalation?: boolean;
    readonly capabilities?: { readonly drop?: readonly string[] };
  };
  readonly resources?: { readonly limits?: Readonly<Record<string, string>> };
}

export interface KeyToPath {
  readonly key: string;
  readonly path: string;
}

export interface DownwardItem {
  readonly path: string;
  readonly fieldRef?: { readonly fieldPath: string };
}

/** The source of a volume, or one source of a projected volume. */
export interface VolumeSource {
  readonly secret?: {
    readonly secretName?: string;
    readonly name?: string;
    readonly items?: readonly KeyToPath[];
    readonly optional?: boolean;
  };
  readonly configMap?: { readonly name: string; readonly items?: readonly KeyToPath[]; readonly optional?: boolean };
  readonly downwardAPI?: { readonly items?: readonly DownwardItem[] };
  readonly serviceAccountToken?: {
    readonly path: string;
    readonly audience?: string;
    readonly expirationSeconds?: number;
  };
}

export interface Volume extends VolumeSource {
  readonly name: string;
  readonly emptyDir?: object;
  readonly projected?: { readonly sources?: readonly VolumeSource[] };
}

export interface PodCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly lastTransitionTime: string;
}

export interface Pod extends KubernetesObject {
  readonly metadata: KubernetesObject['metadata'] & {
    readonly namespace: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly serviceAccountName?: string;
    readonly securityContext?: { readonly runAsUser?: number; readonly runAsNonRoot?: boolean };
    readonly terminationGracePeriodSeconds?: number;
    readonly restartPolicy?: 'Always' | 'OnFailure' | 'Never';
    readonly containers: readonly ContainerSpec[];
    readonly initContainers?: readonly ContainerSpec[];
    readonly volumes?: readonly Volume[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly conditions?: readonly PodCondition[];
  };
}

/** The number of a port. A name is looked up in the ports of the containers. */
export function portNumber(pod: Pod, port: number | string): number | undefined {
  if (typeof port === 'number') {
    return port;
  }
  const ports = pod.spec.containers.flatMap((container) => container.ports ?? []);
  return ports.find(({ name }) => name === port)?.containerPort;
}

/** The value of a field in the downward API. Undefined for unsupported fields. */
export function fieldOf(pod: Pod, fieldPath: string, address: string): string | undefined {
  const { metadata, spec } = pod;
  const quoted = /^metadata\.(labels|annotations)\['(.*)'\]$/.exec(fieldPath);
  if (quoted !== null) {
    return metadata[quoted[1] === 'labels' ? 'labels' : 'annotations']?.[quoted[2] ?? ''] ?? '';
  }
  const fields: Readonly<Record<string, string | undefined>> = {
    'metadata.name': metadata.name,
    'metadata.namespace': metadata.namespace,
    'metadata.uid': metadata.uid,
    'spec.nodeName': spec.nodeName,
    'spec.serviceAccountName': spec.serviceAccountName,
    'status.podIP': address,
    'status.podIPs': address,
    'status.hostIP': '127.0.0.1',
  };
  return fields[fieldPath];
}
