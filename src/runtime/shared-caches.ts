import type { Logger } from 'pino';
import type { Cluster } from '../cluster/index.ts';
import { apiVersionOf } from '../resources/index.ts';
import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import type { CacheStats, RuntimeMetrics } from './metrics.ts';
import { ObjectCache } from './object-cache.ts';
import type { CacheScope, ObjectCacheOptions } from './object-cache.ts';
import { aborted } from './runnable.ts';
import type { Runnable } from './runnable.ts';

export interface SharedCachesOptions {
  readonly cluster: Cluster;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
}

/** The caches of a process, one for each type and scope. */
export class SharedCaches implements Runnable {
  readonly name = 'caches';
  readonly ready: Promise<void>;
  readonly #options: SharedCachesOptions;
  readonly #caches = new Map<string, ObjectCache>();
  readonly #running: Promise<void>[] = [];
  readonly #ready = Promise.withResolvers<void>();
  #signal: AbortSignal | undefined;

  constructor(options: SharedCachesOptions) {
    this.#options = options;
    this.ready = this.#ready.promise;
    this.ready.catch(() => undefined);
  }

  /**
   * The cache of a type. It follows the cluster once {@link start} is called. The first caller's `transform` is used;
   * all callers of a cache must pass the same.
   */
  cache<T extends KubernetesObject>(
    type: ResourceType<T>,
    scope: CacheScope & Pick<ObjectCacheOptions<T>, 'transform'> = {},
  ): ObjectCache<T> {
    const { namespace, labelSelector, fieldSelector } = scope;
    const key = JSON.stringify([apiVersionOf(type), type.resource, namespace, labelSelector, fieldSelector]);
    const known = this.#caches.get(key);
    if (known !== undefined) {
      // The key contains the type.
      return known as unknown as ObjectCache<T>;
    }
    const cache = new ObjectCache<T>({ ...scope, cluster: this.#options.cluster, type, log: this.#options.log });
    this.#caches.set(key, cache as unknown as ObjectCache);
    if (this.#signal !== undefined) {
      this.#running.push(cache.start(this.#signal));
    }
    return cache;
  }

  /** Metrics of each cache. */
  stats(): readonly CacheStats[] {
    return [...this.#caches.values()].map(({ stats }) => stats);
  }

  /** Runs all caches until `signal` is aborted. Ready when the caches created before are synced. Can be called once. */
  async start(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    const forget = this.#options.metrics?.caches(() => this.stats());
    const caches = [...this.#caches.values()];
    this.#running.push(...caches.map((cache) => cache.start(signal)));
    Promise.all(caches.map(({ synced }) => synced)).then(
      () => this.#ready.resolve(),
      (error: unknown) => this.#ready.reject(error),
    );
    await aborted(signal);
    await Promise.all(this.#running);
    forget?.();
  }
}
