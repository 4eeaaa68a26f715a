// What every cluster has from its first moment.
import { randomUUID } from 'node:crypto';
import { groupVersionOf, timeText } from '../../resources/index.ts';
import type { KubernetesObject, MutableObject } from '../../resources/index.ts';
import { BOOTSTRAP_RBAC } from './authorization/bootstrap-rbac.ts';

const NAMESPACES: readonly string[] = ['default', 'kube-node-lease', 'kube-public', 'kube-system'];

/** Resources of the kinds that are made here. */
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

/** Namespaces and RBAC. Rules, subjects and labels are shared by all clusters of a process; only metadata are one's own. */
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
  return [...namespaces, ...access];
}
