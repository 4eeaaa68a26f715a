// The objects of a kind that a user may list.
import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import { unlessForbidden } from './api-error.ts';
import type { Cluster } from './cluster.ts';
import { listAll } from './list-all.ts';

interface ReadableObjects<T extends KubernetesObject> {
  readonly items: readonly T[];
  /** Whether these are all, only those of the namespace, or none, because the user may not list more. */
  readonly scope: 'all' | 'namespace' | 'none';
}

/** Lists all objects of a kind; those of the namespace when the user may not list all. @throws ApiError, ClusterError */
export async function listReadable<T extends KubernetesObject>(
  cluster: Pick<Cluster, 'list'>,
  type: ResourceType<T>,
  namespace: string,
): Promise<ReadableObjects<T>> {
  const all = await unlessForbidden(listAll(cluster, type));
  if (all !== undefined || !type.namespaced) {
    return { items: all?.items ?? [], scope: all === undefined ? 'none' : 'all' };
  }
  const some = await unlessForbidden(listAll(cluster, type, { namespace }));
  return { items: some?.items ?? [], scope: some === undefined ? 'none' : 'namespace' };
}
