// Writes the statuses of governance kinds: only when they differ, and only over the version that they were computed from.
import { isDeepStrictEqual } from 'node:util';
import { type Cluster, isNotFound } from '../cluster/index.ts';
import { CONTROLLER_FIELD_MANAGER, keyOf, type KubernetesObject, type ResourceType } from '../resources/index.ts';
import type { WrittenObjects } from '../runtime/index.ts';

/** An object with a status. */
type WithStatus = KubernetesObject & { readonly status?: unknown };

export class StatusWriter<T extends WithStatus> {
  readonly #cluster: Cluster;
  readonly #type: ResourceType<T>;
  readonly #objects: WrittenObjects<T>;

  constructor(cluster: Cluster, type: ResourceType<T>, objects: WrittenObjects<T>) {
    this.#cluster = cluster;
    this.#type = type;
    this.#objects = objects;
  }

  /**
   * Replaces the status if it differs.
   * @param times fields that are written with a status that differs, and alone are no difference
   * @returns whether it was written
   * @throws ApiError (409 if the object has changed since), ClusterError
   */
  async write(
    object: T,
    status: NonNullable<T['status']>,
    signal: AbortSignal,
    times: Readonly<Record<string, string>> = {},
  ): Promise<boolean> {
    if (isDeepStrictEqual(plain(object.status), plain(status))) {
      return false;
    }
    const key = keyOf(object);
    try {
      const options = { subresource: 'status', fieldManager: CONTROLLER_FIELD_MANAGER, signal };
      this.#objects.recordWrite(
        key,
        await this.#cluster.update(this.#type, { ...object, status: { ...status, ...times } }, options),
      );
      return true;
    } catch (error) {
      this.#objects.forget(key);
      if (isNotFound(error)) {
        return false;
      }
      throw error;
    }
  }
}

/** Cached objects may have no prototype, which a strict comparison would tell from others. */
function plain(status: unknown): unknown {
  return typeof status === 'object' && status !== null ? { ...status } : status;
}
