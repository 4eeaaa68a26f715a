// Reads and writes the objects of one governance kind.
import { isDeepStrictEqual } from 'node:util';
import { type Cluster, isNotFound, unlessGone } from '../../cluster/index.ts';
import { CONTROLLER_FIELD_MANAGER, keyOf, type KubernetesObject, type ResourceType } from '../../resources/index.ts';
import { type ObjectCache, WrittenObjects } from '../../runtime/index.ts';
import { inertTexts } from '../../values/index.ts';

/** An object with a status. */
type WithStatus = KubernetesObject & { readonly status?: unknown };

/** The objects of a cache, with this process's own writes; writes statuses and finalizers. */
export class OwnObjects<T extends WithStatus> extends WrittenObjects<T> {
  readonly #cluster: Pick<Cluster, 'patch' | 'update'>;
  readonly #type: ResourceType<T>;

  constructor(cluster: Pick<Cluster, 'patch' | 'update'>, cache: Pick<ObjectCache<T>, 'get' | 'subscribe' | 'type'>) {
    super(cache);
    this.#cluster = cluster;
    this.#type = cache.type;
  }

  /**
   * Replaces the status if it differs.
   * @param times fields that are written with a status that differs, and alone are no difference
   * @returns whether it was written
   * @throws ApiError (409 if the object has changed since), ClusterError
   */
  async writeStatus(
    object: T,
    next: NonNullable<T['status']>,
    signal: AbortSignal,
    times: Readonly<Record<string, string>> = {},
  ): Promise<boolean> {
    const status = inertTexts(next);
    if (isDeepStrictEqual(plain(object.status), plain(status))) {
      return false;
    }
    const key = keyOf(object);
    try {
      const options = { subresource: 'status', fieldManager: CONTROLLER_FIELD_MANAGER, signal };
      this.recordWrite(
        key,
        await this.#cluster.update(this.#type, { ...object, status: { ...status, ...times } }, options),
      );
      return true;
    } catch (error) {
      this.forget(key);
      if (isNotFound(error)) {
        return false;
      }
      throw error;
    }
  }

  /**
   * Adds or removes a finalizer, unless the object is as it should be, or gone.
   * @throws ApiError (409 if the object has changed since), ClusterError
   */
  async setFinalizer(object: T, finalizer: string, isWanted: boolean, signal: AbortSignal): Promise<void> {
    const before = object.metadata.finalizers ?? [];
    if (before.includes(finalizer) === isWanted) {
      return;
    }
    const finalizers = isWanted ? [...before, finalizer] : before.filter((one) => one !== finalizer);
    const { resourceVersion = '' } = object.metadata;
    // A patch, because caches lack the annotation of `kubectl apply`, which an update would remove.
    const body = { metadata: { resourceVersion, finalizers } };
    const options = { fieldManager: CONTROLLER_FIELD_MANAGER, signal };
    const key = keyOf(object);
    const written = await unlessGone(this.#cluster.patch(this.#type, key, { type: 'merge', body }, options));
    const isDeleted = written?.metadata.deletionTimestamp !== undefined && finalizers.length === 0;
    this.recordWrite(key, isDeleted ? undefined : written);
  }
}

/** Cached objects may have no prototype, which a strict comparison would tell from others. */
function plain(status: unknown): unknown {
  return typeof status === 'object' && status !== null ? { ...status } : status;
}
