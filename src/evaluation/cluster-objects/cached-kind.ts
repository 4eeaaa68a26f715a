// The cache of one kind that policies declare, or why there is none.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { ApiError, Backoff, ClusterError } from '../../cluster/index.ts';
import type { ApiResource, Cluster, ListOptions, ObjectList } from '../../cluster/index.ts';
import { groupResourceOf, withoutManagedFields } from '../../resources/index.ts';
import type { ContextAwareResource, KubernetesObject, ResourceType } from '../../resources/index.ts';
import { ObjectCache } from '../../runtime/index.ts';
import { errorText } from '../../values/index.ts';
import type { KindRevisions } from './kind-revisions.ts';

/** Age at which a silent watch counts as broken: longer than detecting a dead connection (150 s) and reconnecting. Milliseconds. */
const MAX_STALE_MS = 5 * 60_000;

/** A kind has too many objects to be cached: it is read from the API server instead. */
export class TooManyObjects extends Error {
  override readonly name = 'TooManyObjects';
}

export interface CachedKindOptions {
  readonly cluster: Cluster;
  readonly resource: ContextAwareResource;
  /** How many objects it may have now. */
  readonly room: () => number;
  /** Counters of changes, by kind. */
  readonly revisions: KindRevisions;
  readonly log: Logger;
}

/** Watches the objects of a kind until it is stopped. */
export class CachedKind {
  /** Its counter of {@link KindRevisions}. */
  readonly counter: number;
  readonly #options: CachedKindOptions;
  readonly #stopping = new AbortController();
  readonly #waiting = new Set<() => void>();
  #type: ApiResource | undefined;
  #cache: ObjectCache | undefined;
  /** The last failure before there were objects. */
  #error: unknown;

  constructor(options: CachedKindOptions) {
    this.#options = options;
    this.counter = options.revisions.assign();
    void this.#run(this.#stopping.signal);
  }

  /** Number of cached objects. */
  get size(): number {
    return this.#cache?.size ?? 0;
  }

  /** The cache, if it is synced and not stale. */
  get current(): ObjectCache | undefined {
    const cache = this.#cache;
    return cache?.isSynced === true && !isStale(cache) ? cache : undefined;
  }

  /**
   * The cache, once it is synced; `signal` limits the wait.
   * @throws Error with the reason, at once when waiting does not help; {@link TooManyObjects}.
   */
  async read(signal?: AbortSignal): Promise<ObjectCache> {
    for (;;) {
      const cache = this.#cache;
      if (cache?.isSynced === true) {
        if (isStale(cache)) {
          const seconds = Math.round((cache.report.lagMs ?? 0) / 1000);
          throw new Error(this.#sentence(`nothing was heard of the cluster for ${seconds} s`, cache.report.lastError));
        }
        return cache;
      }
      if (this.#error instanceof TooManyObjects) {
        throw this.#error;
      }
      if (isFinal(this.#error) || this.#stopping.signal.aborted) {
        throw new Error(this.#sentence('', this.#error), { cause: this.#error });
      }
      if (signal?.aborted === true) {
        throw new Error(this.#sentence('its objects are not known yet', this.#error), { cause: this.#error });
      }
      await this.#nextChange(signal);
    }
  }

  stop(): void {
    this.#stopping.abort(new Error('no policy declares this kind any more'));
    this.#options.revisions.ended();
    this.#changed();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const type = await this.#resolve(signal);
    if (type === undefined) {
      return;
    }
    this.#type = type;
    const ending = new AbortController();
    const end = (): void => ending.abort(signal.reason);
    signal.addEventListener('abort', end, { once: true });
    const cache = new ObjectCache({
      cluster: this.#bounded(),
      type,
      transform: withoutManagedFields,
      log: this.#options.log,
      onError: (error) => {
        this.#error = error;
        if (error instanceof TooManyObjects) {
          // The watch ends, so that the kind is not listed repeatedly.
          this.#cache = undefined;
          this.#options.revisions.ended();
          this.#options.log.warn({ kind: type.kind, error: error.message }, 'a kind is not cached');
          ending.abort(error);
        }
        this.#changed();
      },
    });
    this.#cache = cache;
    cache.subscribe(() => this.#options.revisions.changed(this.counter));
    cache.synced.then(
      () => this.#changed(),
      () => undefined,
    );
    await cache.start(ending.signal);
    signal.removeEventListener('abort', end);
  }

  /** Retries discovery until the cluster serves the kind. Undefined: stopped before. */
  async #resolve(signal: AbortSignal): Promise<ApiResource | undefined> {
    const { cluster, resource } = this.#options;
    const backoff = new Backoff();
    while (!signal.aborted) {
      try {
        const type = await cluster.discovery.find(resource.apiVersion, resource.kind, { signal });
        if (type !== undefined) {
          return type;
        }
        this.#error = new NotServed(resource);
      } catch (error) {
        this.#error = error;
      }
      this.#changed();
      await sleep(backoff.failed(performance.now()), undefined, { signal, ref: false }).catch(() => undefined);
    }
    return undefined;
  }

  /** The cluster, limited to the room for objects: too many are detected before all are in memory. */
  #bounded(): Pick<Cluster, 'list' | 'watch'> {
    const { cluster, room } = this.#options;
    const check = (count: number): void => {
      if (count > room()) {
        throw new TooManyObjects(this.#sentence(`it has more objects (${count}) than there is room for`, undefined));
      }
    };
    const cacheSize = (): number => this.size;
    return {
      async list<T extends KubernetesObject>(type: ResourceType<T>, options?: ListOptions): Promise<ObjectList<T>> {
        const page = await cluster.list(type, options);
        check(page.items.length + (page.metadata.remainingItemCount ?? 0));
        return page;
      },
      async *watch(type, options) {
        for await (const event of cluster.watch(type, options)) {
          check(cacheSize());
          yield event;
        }
      },
    };
  }

  #nextChange(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#waiting.delete(end);
        signal?.removeEventListener('abort', end);
        resolve();
      };
      this.#waiting.add(end);
      signal?.addEventListener('abort', end, { once: true });
    });
  }

  #changed(): void {
    for (const waiting of this.#waiting) {
      waiting();
    }
  }

  #sentence(what: string, error: unknown): string {
    const { apiVersion, kind } = this.#options.resource;
    const why = error === undefined ? '' : reasonOf(error, this.#type);
    return [`cannot read ${apiVersion}/${kind}`, what, why].filter((part) => part !== '').join(': ');
  }
}

/** The cluster has no such kind. */
export class NotServed extends Error {
  override readonly name = 'NotServed';

  constructor({ apiVersion, kind }: ContextAwareResource) {
    super(
      `the cluster does not serve ${apiVersion}/${kind}; correct the name, or install its CustomResourceDefinition`,
    );
  }
}

/** The error of a read of a kind, and what to do about it. */
export function reasonOf(error: unknown, type: ResourceType | undefined): string {
  const message = errorText(error);
  return error instanceof ApiError && error.reason === 'Forbidden' && type !== undefined
    ? `${message}; allow the policy server to get, list and watch ${groupResourceOf(type)}`
    : message;
}

/** Whether a retry would fail, too. */
function isFinal(error: unknown): boolean {
  return error instanceof ApiError
    ? error.code === 401 || error.code === 403 || error.code === 404 || error.code === 405
    : error instanceof NotServed || (error instanceof ClusterError && error.code === 'credentials-failed');
}

function isStale(cache: ObjectCache): boolean {
  const { lagMs } = cache.report;
  return lagMs !== undefined && lagMs > MAX_STALE_MS;
}
