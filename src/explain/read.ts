// What a user may read, and may not.
import { type Cluster, isForbidden, isNotFound } from '../cluster/index.ts';
import type { ObjectKey, KubernetesObject, ResourceType } from '../resources/index.ts';

/** What was read; `unreadable` if the user may not, `absent` if there is none. */
export type Read<T> = T | 'absent' | 'unreadable';

/** An object, as far as the user may read it. @throws ApiError, ClusterError */
export async function readObject<T extends KubernetesObject>(
  cluster: Pick<Cluster, 'get'>,
  type: ResourceType<T>,
  key: ObjectKey,
): Promise<Read<T>> {
  return await readAs(cluster.get(type, key));
}

/** What is being read, as far as the user may read it. @throws ApiError, ClusterError */
export async function readAs<T>(reading: Promise<T>): Promise<Read<T>> {
  try {
    return await reading;
  } catch (error) {
    if (isForbidden(error)) {
      return 'unreadable';
    }
    if (isNotFound(error)) {
      return 'absent';
    }
    throw error;
  }
}
