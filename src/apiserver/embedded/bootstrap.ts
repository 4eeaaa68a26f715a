// The objects of a new cluster.
import { randomUUID } from 'node:crypto';
import { groupVersionOf, timeText } from '../../resources/index.ts';
import type { KubernetesObject, MutableObject } from '../../resources/index.ts';
import { BOOTSTRAP_RBAC } from './authorization/bootstrap-rbac.ts';
import { KUBERNETES_SERVICE_IP } from './service-addresses.ts';

const NAMESPACES: readonly string[] = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/** Resources by kind. */
const RBAC_RESOURCES: Readonly<Record<string, string>> = {
  ClusterRole: 'clusterroles',
  ClusterRoleBinding: 'clusterrolebindings',
  Role: 'roles',
  RoleBinding: 'rolebindings',
};

export interface BootstrapObject {
  readonly collection: string;
  readonly object: MutableObject;
}

/**
 * The objects of a new cluster. All clusters of a process share rules, subjects and labels of RBAC objects, which saves memory
 * in tests with many clusters.
 */
export function bootstrapObjects(now: number): readonly BootstrapObject[] {
  const creationTimestamp = timeText(now);
  const namespaces = NAMESPACES.map((name) => ({
    collection: 'namespaces',
    object: {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: {
        name,
        uid: randomUUID(),
        creationTimestamp,
        labels: { 'kubernetes.io/metadata.name': name },
      },
      spec: { finalizers: ['kubernetes'] },
      status: { phase: 'Active' },
    },
  }));
  const access = BOOTSTRAP_RBAC.map((object: KubernetesObject) => ({
    collection: `${RBAC_RESOURCES[object.kind]}.${groupVersionOf(object.apiVersion).group}`,
    object: { ...object, metadata: { ...object.metadata, uid: randomUUID(), creationTimestamp } },
  }));
  return [
    ...namespaces,
    ...access,
    ...OBJECTS.map(({ collection, object }) => ({
      collection,
      object: { ...structuredClone(object), metadata: { ...object.metadata, uid: randomUUID(), creationTimestamp } },
    })),
  ];
}

/** The Service of the API server, and the system PriorityClasses. */
const OBJECTS: readonly { readonly collection: string; readonly object: KubernetesObject }[] = [
  {
    collection: 'services',
    object: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: {
        namespace: 'default',
        name: 'kubernetes',
        labels: { component: 'apiserver', provider: 'kubernetes' },
      },
      spec: {
        clusterIP: KUBERNETES_SERVICE_IP,
        clusterIPs: [KUBERNETES_SERVICE_IP],
        internalTrafficPolicy: 'Cluster',
        ipFamilies: ['IPv4'],
        ipFamilyPolicy: 'SingleStack',
        ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: 6443 }],
        sessionAffinity: 'None',
        type: 'ClusterIP',
      },
      status: { loadBalancer: {} },
    },
  },
  priorityClass(
    'system-cluster-critical',
    2_000_000_000,
    'Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.',
  ),
  priorityClass(
    'system-node-critical',
    2_000_001_000,
    'Used for system critical pods that must not be moved from their current node.',
  ),
];

function priorityClass(name: string, value: number, description: string) {
  return {
    collection: 'priorityclasses.scheduling.k8s.io',
    object: {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name, generation: 1 },
      value,
      description,
      preemptionPolicy: 'PreemptLowerPriority',
    },
  };
}
