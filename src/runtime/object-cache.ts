import type { Logger } from 'pino';
import { Reflector } from '../cluster/index.ts';
import type { Cluster, ReflectorReport } from '../cluster/index.ts';
import { groupResourceOf } from '../resources/index.ts';
import type { KubernetesObject, ObjectKey, ResourceType } from '../resources/index.ts';
import { errorText } from '../values/index.ts';
import { withoutBookkeeping } from './bookkeeping.ts';
import type { CacheStats } from './metrics.ts';
import type { IndexFunction, ObjectIndex } from './object-index.ts';
import { ObjectStore } from './object-store.ts';
import type { ChangeListener, CachedObjects } from './object-store.ts';
import type { Runnable } from './runnable.ts';

/** The objects of a type that a cache holds. */
export interface CacheScope {
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ObjectCacheOptions<T extends KubernetesObject> extends CacheScope {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly type: ResourceType<T>;
  /**
   * Reduces an object before it is stored. Default: {@link withoutBookkeeping}. Must return a new object instead of
   * changing its argument.
   */
  readonly transform?: (object: T) => T;
  /** Called with every failed list or watch, which is also logged. Default: none. */
  readonly onError?: (error: unknown) => void;
  readonly log: Logger;
}

/**
 * The objects of a type, some milliseconds behind the cluster: listed once, then watched. All readers share the same
 * frozen objects. Until {@link synced} resolves, reads may miss objects.
 */
export class ObjectCache<T extends KubernetesObject = KubernetesObject> implements CachedObjects<T>, Runnable {
  /** `pods`, `deployments.apps`, with the scope behind it if it has one. */
  readonly name: string;
  readonly type: ResourceType<T>;
  readonly #store: ObjectStore<T>;
  readonly #reflector: Reflector<T>;

  constructor(options: ObjectCacheOptions<T>) {
    const { cluster, type, namespace, labelSelector, fieldSelector, transform = withoutBookkeeping } = options;
    this.type = type;
    this.name = nameOf(type, options);
    const log = options.log.child({ cache: this.name });
    this.#store = new ObjectStore<T>({
      transform,
      onError: (error) =>
        log.error({ error: errorText(error) }, 'a listener, an index or a transform of a cache failed'),
    });
    this.#reflector = new Reflector<T>({
      cluster,
      type,
      handler: {
        replace: (items) => this.#store.replace(items),
        apply: (event) => this.#store.apply(event),
      },
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      onError: (error, during) => {
        log.warn({ during, error: errorText(error) }, 'the cluster cannot be followed, trying again');
        options.onError?.(error);
      },
    });
  }

  /** Resolves after the first full list. Rejects when the cache stops before. */
  get synced(): Promise<void> {
    return this.#reflector.synced;
  }

  get ready(): Promise<void> {
    return this.#reflector.synced;
  }

  get isSynced(): boolean {
    return this.#reflector.report.synced;
  }

  /** State of the list and watch. */
  get report(): ReflectorReport {
    return this.#reflector.report;
  }

  get stats(): CacheStats {
    const { synced, lagMs, events, relists, failures } = this.#reflector.report;
    const lists = relists + (synced ? 1 : 0);
    return { name: this.name, size: this.size, isSynced: synced, lagMs, events, lists, failures };
  }

  get size(): number {
    return this.#store.size;
  }

  get revision(): number {
    return this.#store.revision;
  }

  get(key: ObjectKey): T | undefined {
    return this.#store.get(key);
  }

  list(namespace?: string): readonly T[] {
    return this.#store.list(namespace);
  }

  namespaces(): Iterable<string> {
    return this.#store.namespaces();
  }

  index(valuesOf: IndexFunction<T>): ObjectIndex<T> {
    return this.#store.index(valuesOf);
  }

  ownedBy(uid: string): readonly T[] {
    return this.#store.ownedBy(uid);
  }

  subscribe(listener: ChangeListener<T>): () => void {
    return this.#store.subscribe(listener);
  }

  /** Follows the cluster until `signal` is aborted; failures are retried. Can be called once. */
  start(signal: AbortSignal): Promise<void> {
    return this.#reflector.start(signal);
  }
}

function nameOf(type: ResourceType, { namespace, labelSelector, fieldSelector }: CacheScope): string {
  const scope = [namespace, labelSelector, fieldSelector].filter((part) => part !== undefined);
  return scope.length === 0 ? groupResourceOf(type) : `${groupResourceOf(type)} ${scope.join(' ')}`;
}
