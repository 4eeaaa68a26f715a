import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import { ApiError } from './api-error.ts';
import { Backoff } from './backoff.ts';
import type { Cluster, ListOptions, WatchEvent } from './cluster.ts';
import { ClusterError } from './errors.ts';
import { listAll, PAGE_SIZE } from './list-all.ts';
import { listPages } from './list-pages.ts';

/** Shortest timeout of a watch. Each is drawn from this to twice as long, so that watches do not end together. Seconds. */
const WATCH_SECONDS = 300;
/** API servers send a bookmark about every minute: after two missing ones the connection counts as dead. Milliseconds. */
const SILENCE_LIMIT_MS = 150_000;
/** A watch with events that lasted this long ends the outage before it. Milliseconds. */
const HEALTHY_MS = 1_000;
/** The same for a watch without events, which may only have waited for an answer. Milliseconds. */
const HEALTHY_QUIET_MS = 10_000;
/** After this time of refused watches the reflector lists again. Milliseconds. */
const REFUSED_LIMIT_MS = 5 * 60_000;
/** How long a server may lag behind our version. After that, etcd was restored from a backup: list again. Milliseconds. */
const FUTURE_LIMIT_MS = 10_000;

/** The consumer of a {@link Reflector}. Errors that it throws are reported, and the reflector continues. */
interface ReflectorHandler<T extends KubernetesObject> {
  /** All objects: at the start, and after missed versions. */
  replace(items: readonly T[], resourceVersion: string): void;
  /** One change: ADDED, MODIFIED or DELETED. */
  apply(event: WatchEvent<T>): void;
}

/** A consumer that gets lists page by page, so that memory does not grow with the type. What follows is read when it took the last part. */
interface PagedHandler<T extends KubernetesObject> {
  /** A list begins: at the start, after missed versions, and after a list that failed. */
  begin(): void;
  page(items: readonly T[]): Promise<void>;
  /** All objects came since the last {@link begin}. */
  end(): void;
  /** One change: ADDED, MODIFIED or DELETED. */
  apply(event: WatchEvent<T>): void | Promise<void>;
}

export interface ReflectorOptions<T extends KubernetesObject> {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly type: ResourceType<T>;
  readonly handler: ReflectorHandler<T> | PagedHandler<T>;
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Objects per page. Default: 500. */
  readonly pageSize?: number;
  /** Silence after which a new watch begins. Milliseconds. Default: 150,000. */
  readonly silenceLimitMs?: number;
  /** Called for every failure of the cluster (`list`, `watch`) and of the handler. */
  readonly onError?: (error: unknown, during: 'list' | 'watch' | 'handler') => void;
  /** From 0 to below 1, for jitter. Default: Math.random. */
  readonly random?: () => number;
}

/** The state of a reflector. */
export interface ReflectorReport {
  /** `waiting`: the last attempt failed, and the next one is not due yet. */
  readonly state: 'new' | 'listing' | 'watching' | 'waiting' | 'stopped';
  readonly synced: boolean;
  /** Time since the last list, event or bookmark; up to a minute is normal. Milliseconds; undefined before the first. */
  readonly lagMs: number | undefined;
  /** The newest version that the handler knows. */
  readonly resourceVersion: string | undefined;
  /** Events applied, bookmarks not counted. */
  readonly events: number;
  /** Full lists after the first one. */
  readonly relists: number;
  /** Watches after the first one. */
  readonly reconnects: number;
  /** Lists and watches that failed. */
  readonly failures: number;
  /** Errors that the handler threw. */
  readonly handlerErrors: number;
  /** The error of the present outage. */
  readonly lastError: unknown;
}

/**
 * Keeps a handler up to date with the objects of a type: lists once, then watches, and resumes from the last version
 * after any failure. Lists again only when the cluster no longer has that version, and never gives up.
 */
export class Reflector<T extends KubernetesObject = KubernetesObject> {
  /** Resolves when the handler has all objects. Rejects when stopped before. */
  readonly synced: Promise<void>;
  readonly #options: ReflectorOptions<T>;
  readonly #selection: Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'>;
  readonly #random: () => number;
  readonly #backoff: Backoff;
  readonly #sync = Promise.withResolvers<void>();
  #state: ReflectorReport['state'] = 'new';
  #isSynced = false;
  #version: string | undefined;
  #heardAt: number | undefined;
  #events = 0;
  #lists = 0;
  #watches = 0;
  #failures = 0;
  #handlerErrors = 0;
  #lastError: unknown;
  /** Since when the cluster answers watches with errors. */
  #refusedSince: number | undefined;

  constructor(options: ReflectorOptions<T>) {
    const { namespace, labelSelector, fieldSelector, random = Math.random } = options;
    this.#options = options;
    this.#selection = {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
    };
    this.#random = random;
    this.#backoff = new Backoff(random);
    this.synced = this.#sync.promise;
    // A rejection that nobody awaits must not end the process.
    this.synced.catch(() => undefined);
  }

  get report(): ReflectorReport {
    return {
      state: this.#state,
      synced: this.#isSynced,
      lagMs: this.#heardAt === undefined ? undefined : performance.now() - this.#heardAt,
      resourceVersion: this.#version,
      events: this.#events,
      relists: Math.max(0, this.#lists - 1),
      reconnects: Math.max(0, this.#watches - 1),
      failures: this.#failures,
      handlerErrors: this.#handlerErrors,
      lastError: this.#lastError,
    };
  }

  /** Runs until the signal is aborted. Never rejects. Call once. */
  async start(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const during = this.#version === undefined ? 'list' : 'watch';
      const startedAt = performance.now();
      const eventsBefore = this.#events;
      let error: unknown;
      try {
        if (during === 'list') {
          await this.#list(signal);
          continue;
        }
        await this.#watch(signal, this.#version ?? '');
      } catch (caught) {
        error = caught;
      }
      if (!signal.aborted) {
        const healthy =
          error instanceof SilenceError ||
          (during === 'watch' && isHealthy(performance.now() - startedAt, this.#events > eventsBefore));
        await this.#after(error, during, healthy, signal);
      }
    }
    this.#state = 'stopped';
    this.#sync.reject(signal.reason);
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.#state = 'listing';
    const { handler } = this.#options;
    const version = 'page' in handler ? await this.#pages(handler, signal) : await this.#all(handler, signal);
    this.#lists += 1;
    this.#version = version;
    this.#received();
    if (!this.#isSynced) {
      this.#isSynced = true;
      this.#sync.resolve();
    }
  }

  /** The version of the list. */
  async #all(handler: ReflectorHandler<T>, signal: AbortSignal): Promise<string> {
    const { cluster, type, pageSize = PAGE_SIZE } = this.#options;
    const { items, metadata } = await listAll(cluster, type, { ...this.#selection, limit: pageSize, signal });
    await this.#guard(() => handler.replace(items, metadata.resourceVersion));
    return metadata.resourceVersion;
  }

  /** The version of the list. @throws ApiError 410 when the handler took longer than servers keep a list */
  async #pages(handler: PagedHandler<T>, signal: AbortSignal): Promise<string> {
    const { cluster, type, pageSize = PAGE_SIZE } = this.#options;
    await this.#guard(() => handler.begin());
    let version = '';
    for await (const { items, metadata } of listPages(cluster, type, { ...this.#selection, limit: pageSize, signal })) {
      await this.#guard(() => handler.page(items));
      version = metadata.resourceVersion;
      signal.throwIfAborted();
    }
    await this.#guard(() => handler.end());
    return version;
  }

  /** Returns when the cluster ends the watch, which it does from time to time. */
  async #watch(signal: AbortSignal, from: string): Promise<void> {
    this.#state = 'watching';
    this.#watches += 1;
    const { cluster, type, handler, silenceLimitMs = SILENCE_LIMIT_MS } = this.#options;
    const timeoutSeconds = Math.round(WATCH_SECONDS * (1 + this.#random()));
    using silence = new SilenceAlarm(signal, silenceLimitMs);
    const events = cluster.watch(type, {
      ...this.#selection,
      resourceVersion: from,
      allowBookmarks: true,
      timeoutSeconds,
      signal: silence.signal,
    });
    for await (const event of events) {
      if (event.type !== 'BOOKMARK') {
        await this.#guard(() => handler.apply(event));
        this.#events += 1;
      }
      this.#version = event.object.metadata.resourceVersion ?? this.#version;
      this.#received();
      silence.received();
    }
  }

  /** Decides after a watch or a failure whether to list, and waits. */
  async #after(error: unknown, during: 'list' | 'watch', healthy: boolean, signal: AbortSignal): Promise<void> {
    if (healthy) {
      this.#backoff.reset();
    }
    if (error === undefined) {
      this.#refusedSince = undefined;
      if (healthy) {
        this.#lastError = undefined;
        return;
      }
    } else {
      this.#failures += 1;
      this.#lastError = error;
      this.#report(error, during);
    }
    if (during === 'watch' && this.#mustList(error)) {
      this.#version = undefined;
      this.#refusedSince = undefined;
    }
    this.#state = 'waiting';
    const retryAfterMs = error instanceof ApiError ? (error.details?.retryAfterSeconds ?? 0) * 1000 : 0;
    await pause(this.#backoff.failed(performance.now(), retryAfterMs), signal);
  }

  /** Whether a watch cannot resume. */
  #mustList(error: unknown): boolean {
    if (!(error instanceof ApiError)) {
      this.#refusedSince = undefined;
      return false;
    }
    if (error.code === 410) {
      return true;
    }
    if ([401, 403, 429, 503].includes(error.code)) {
      return false;
    }
    this.#refusedSince ??= performance.now();
    const isFuture = error.details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') === true;
    return performance.now() - this.#refusedSince > (isFuture ? FUTURE_LIMIT_MS : REFUSED_LIMIT_MS);
  }

  #received(): void {
    this.#heardAt = performance.now();
    this.#lastError = undefined;
    this.#refusedSince = undefined;
  }

  async #guard(call: () => void | Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.#handlerErrors += 1;
      this.#report(error, 'handler');
    }
  }

  #report(error: unknown, during: 'list' | 'watch' | 'handler'): void {
    try {
      this.#options.onError?.(error, during);
    } catch {
      // An error of the error callback has nowhere to go.
    }
  }
}

/** A silent watch. Not an outage: nothing need be wrong, and it waited long enough already. */
class SilenceError extends ClusterError {
  constructor(limitMs: number) {
    super(
      'timeout',
      `the watch was silent for ${limitMs} ms: expected at least a bookmark; the connection is taken to be dead`,
    );
  }
}

function isHealthy(lastedMs: number, broughtEvents: boolean): boolean {
  return lastedMs >= (broughtEvents ? HEALTHY_MS : HEALTHY_QUIET_MS);
}

/** Ends a silent watch, or any watch when its reflector stops. */
class SilenceAlarm implements Disposable {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = (): void => this.#controller.abort(this.#outer.reason);
  #heardAt = performance.now();

  constructor(outer: AbortSignal, limitMs: number) {
    this.#outer = outer;
    outer.addEventListener('abort', this.#onAbort, { once: true });
    // One interval timer costs less than a timer that every event restarts.
    this.#timer = setInterval(
      () => {
        if (performance.now() - this.#heardAt > limitMs) {
          this.#controller.abort(new SilenceError(limitMs));
        }
      },
      Math.max(10, limitMs / 10),
    );
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  received(): void {
    this.#heardAt = performance.now();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#outer.removeEventListener('abort', this.#onAbort);
  }
}

/** Waits, or until the signal is aborted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    // Aborted: the caller checks the signal.
  }
}
