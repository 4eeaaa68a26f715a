import type { Logger } from 'pino';
import { Reflector } from '../cluster/index.ts';
import type { Cluster, ReflectorReport } from '../cluster/index.ts';
import { groupResourceOf } from '../resources/index.ts';
import type { KubernetesObject, ObjectKey, ResourceType } from '../resources/index.ts';
import { errorText } from '../values/index.ts';
import { withoutBookkeeping } from './bookkeeping.ts';
import type { CacheFigures } from './metrics.ts';
import type { IndexFunction, ObjectIndex } from './object-index.ts';
import { ObjectStore } from './object-store.ts';
import type { ChangeListener, ObjectView } from './object-store.ts';
import type { Runnable } from './runnable.ts';

/** Which objects of a type a cache has. */
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
   * What is kept of an object. Default: {@link withoutBookkeeping}. Objects are shared: it makes a new one where it changes
   * something.
   */
  readonly transform?: (object: T) => T;
  /** Told of every failure to follow the cluster, besides the log. Default: nobody. */
  readonly onError?: (error: unknown) => void;
  readonly log: Logger;
}

/**
 * The objects of a type as they are in the cluster, some milliseconds ago: listed once, then watched. Everybody reads the
 * same frozen objects. Reads before {@link synced} see what is known so far, which may be nothing.
 */
export class ObjectCache<T extends KubernetesObject = KubernetesObject> implements ObjectView<T>, Runnable {
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

  /** Resolves when every object is here that there was at the start. Rejects when the cache is stopped before. */
  get synced(): Promise<void> {
    return this.#reflector.synced;
  }

  get ready(): Promise<void> {
    return this.#reflector.synced;
  }

  get isSynced(): boolean {
    return this.#reflector.report.synced;
  }

  /** How the connection to the cluster is doing. */
  get report(): ReflectorReport {
    return this.#reflector.report;
  }

  get figures(): CacheFigures {
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

  /** Follows the cluster until `signal` is aborted, whatever happens. Once only. */
  start(signal: AbortSignal): Promise<void> {
    return this.#reflector.start(signal);
  }
}

function nameOf(type: ResourceType, { namespace, labelSelector, fieldSelector }: CacheScope): string {
  const scope = [namespace, labelSelector, fieldSelector].filter((part) => part !== undefined);
  return scope.length === 0 ? groupResourceOf(type) : `${groupResourceOf(type)} ${scope.join(' ')}`;
}
