// Objects of clusters for tests.
import type { KubernetesObject } from '../../resources/index.ts';

export interface SamplePod {
  readonly name?: string;
  readonly namespace?: string;
  readonly container?: string;
  readonly image?: string;
  readonly node?: string;
  readonly daemonSet?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly others?: readonly string[];
  readonly os?: string;
  readonly hostNetwork?: boolean;
}

/** A pod of an agent. */
export function agentPod({
  name = 'cilium-a',
  namespace = 'kube-system',
  container = 'cilium-agent',
  image = 'quay.io/cilium/cilium:v1.15.4',
  node,
  daemonSet,
  labels,
  args = [],
  others = [],
  os,
  hostNetwork = true,
}: SamplePod = {}): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      ...(labels === undefined ? {} : { labels }),
      ...(daemonSet === undefined
        ? {}
        : { ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: daemonSet, uid: 'd' }] }),
    },
    spec: {
      ...(hostNetwork ? { hostNetwork } : {}),
      ...(node === undefined ? {} : { nodeName: node }),
      ...(os === undefined ? {} : { nodeSelector: { 'kubernetes.io/os': os } }),
      containers: [
        ...others.map((other) => ({ name: other, image: `example.com/${other}:v9.9.9` })),
        { name: container, image, args },
      ],
    },
  };
}

/** A policy with a range of ports. */
export function rangePolicy(name = 'myegress', namespace = 'shop'): KubernetesObject {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace },
    spec: {
      podSelector: {},
      policyTypes: ['Egress'],
      egress: [
        { to: [{ ipBlock: { cidr: '203.0.113.0/24' } }], ports: [{ protocol: 'TCP', port: 30_000, endPort: 32_000 }] },
      ],
    },
  };
}
