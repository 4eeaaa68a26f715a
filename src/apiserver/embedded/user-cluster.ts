import { ClusterError } from '../../cluster/index.ts';
import type {
  Cluster,
  DeleteOptions,
  Discovery,
  ListOptions,
  ObjectList,
  OpenApiSource,
  Patch,
  RequestOptions,
  SubresourceOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from '../../cluster/index.ts';
import type { KubernetesObject, ObjectKey, ResourceType } from '../../resources/index.ts';
import { EmbeddedDiscovery } from './discovery.ts';
import { EmbeddedOpenApi } from './open-api.ts';
import type { Caller, ClusterContext } from './objects/cluster-context.ts';
import type { ObjectDeleter } from './objects/object-deletion.ts';
import { listObjects, readObject } from './objects/object-reads.ts';
import { watchObjects } from './objects/object-watch.ts';
import type { WatchLifetime } from './objects/object-watch.ts';
import type { ObjectWrites } from './objects/object-writes.ts';
import type { SubresourceCreator } from './subresource-creator.ts';

/** The parts that the clusters of all users share. */
export interface UserClusterParts {
  readonly context: ClusterContext;
  readonly writer: ObjectWrites;
  readonly deleter: ObjectDeleter;
  readonly creator: SubresourceCreator;
  readonly lifetime: WatchLifetime;
}

/** An embedded cluster as one user. */
export class UserCluster implements Cluster {
  readonly discovery: Discovery;
  readonly openApi: OpenApiSource;
  readonly #parts: UserClusterParts;
  readonly #caller: Caller;

  constructor(parts: UserClusterParts, caller: Caller) {
    this.#parts = parts;
    this.#caller = caller;
    this.discovery = new EmbeddedDiscovery(parts.context.registry);
    this.openApi = new EmbeddedOpenApi(parts.context.registry);
  }

  async get<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options: RequestOptions & SubresourceOptions & { readonly resourceVersion?: string } = {},
  ): Promise<T> {
    options.signal?.throwIfAborted();
    this.#requireOpen();
    return readObject(this.#parts.context, this.#caller, type, key, options) as T;
  }

  async list<T extends KubernetesObject>(type: ResourceType<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    options.signal?.throwIfAborted();
    this.#requireOpen();
    return listObjects(this.#parts.context, this.#caller, type, options) as ObjectList<T>;
  }

  watch<T extends KubernetesObject>(type: ResourceType<T>, options: WatchOptions = {}): AsyncIterable<WatchEvent<T>> {
    const { context, lifetime } = this.#parts;
    return watchObjects(context, this.#caller, type, options, lifetime) as AsyncGenerator<WatchEvent<T>>;
  }

  async create<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: KubernetesObject,
    options: WriteOptions & SubresourceOptions = {},
  ): Promise<T> {
    options.signal?.throwIfAborted();
    this.#requireOpen();
    const { creator, writer } = this.#parts;
    const made = creator.handles(type, options.subresource)
      ? creator.create(this.#caller, type, object, options)
      : writer.create(this.#caller, type, object, options);
    return (await made) as T;
  }

  async update<T extends KubernetesObject>(
    type: ResourceType<T>,
    object: KubernetesObject,
    options: WriteOptions & SubresourceOptions = {},
  ): Promise<T> {
    options.signal?.throwIfAborted();
    this.#requireOpen();
    return (await this.#parts.writer.update(this.#caller, type, object, options)) as T;
  }

  async patch<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    patch: Patch,
    options: WriteOptions & SubresourceOptions = {},
  ): Promise<T> {
    options.signal?.throwIfAborted();
    this.#requireOpen();
    return (await this.#parts.writer.patch(this.#caller, type, key, patch, options)) as T;
  }

  async delete<T extends KubernetesObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    options: DeleteOptions = {},
  ): Promise<T | undefined> {
    options.signal?.throwIfAborted();
    this.#requireOpen();
    return (await this.#parts.deleter.delete(this.#caller, type, key, options)) as T | undefined;
  }

  async deleteCollection(
    type: ResourceType,
    options: DeleteOptions & Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'> = {},
  ): Promise<void> {
    options.signal?.throwIfAborted();
    this.#requireOpen();
    await this.#parts.deleter.deleteCollection(this.#caller, type, options);
  }

  #requireOpen(): void {
    if (this.#parts.lifetime.closed.aborted) {
      throw new ClusterError('unreachable', 'the embedded cluster is closed: open it again');
    }
  }
}
