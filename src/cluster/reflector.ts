import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject, ResourceType } from '../resources/index.ts';
import { ApiError } from './api-error.ts';
import { Backoff } from './backoff.ts';
import type { Cluster, ListOptions, WatchEvent } from './cluster.ts';
import { ClusterError } from './errors.ts';
import { listAll, PAGE_SIZE } from './list-all.ts';

/** Watches are asked to last from this to twice as long, drawn each time, so that those of a fleet end one by one. Seconds. */
const WATCH_SECONDS = 300;
/** API servers send a bookmark about every minute: after two that did not come, the connection is not trusted any more. Milliseconds. */
export const SILENCE_LIMIT_MS = 150_000;
/** A watch that brought something and lasted this long shows that the outage before it is over. Milliseconds. */
const HEALTHY_MS = 1_000;
/** One that brought nothing has to last longer: it may only have waited for an answer. Milliseconds. */
const HEALTHY_QUIET_MS = 10_000;
/** A server that refuses to go on from a version for this long will not change its mind: then list. Milliseconds. */
const REFUSAL_PATIENCE_MS = 5 * 60_000;
/** A version that is newer than the server's own: another server may lag, but not for this long; it was put back. Milliseconds. */
const FUTURE_PATIENCE_MS = 10_000;

/** Who keeps what a {@link Reflector} brings. What these throw is reported, and the reflector goes on. */
export interface ReflectorHandler<T extends KubernetesObject> {
  /** All objects that there are: at the start, and after versions were missed. */
  replace(items: readonly T[], resourceVersion: string): void;
  /** One change: ADDED, MODIFIED or DELETED. */
  apply(event: WatchEvent<T>): void;
}

export interface ReflectorOptions<T extends KubernetesObject> {
  readonly cluster: Pick<Cluster, 'list' | 'watch'>;
  readonly type: ResourceType<T>;
  readonly handler: ReflectorHandler<T>;
  /** Default: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Objects asked for at a time. Default: 500. */
  readonly pageSize?: number;
  /** Without an event or bookmark for this long, watch anew. Milliseconds. Default: 150,000. */
  readonly silenceLimitMs?: number;
  /** Told of every failure: of the cluster (`list`, `watch`) and of the handler. */
  readonly onError?: (error: unknown, during: 'list' | 'watch' | 'handler') => void;
  /** From 0 to below 1, for jitter. Default: Math.random. */
  readonly random?: () => number;
}

/** How a reflector is doing. */
export interface ReflectorReport {
  /** `waiting`: the last attempt failed, and the next one is not due yet. */
  readonly state: 'new' | 'listing' | 'watching' | 'waiting' | 'stopped';
  readonly synced: boolean;
  /** Since the last sign of life: list, event or bookmark. Up to a minute is normal. Milliseconds; undefined before the first. */
  readonly lagMs: number | undefined;
  /** The newest version that the handler knows. */
  readonly resourceVersion: string | undefined;
  /** Events applied, bookmarks not counted. */
  readonly events: number;
  /** Full lists after the first one. */
  readonly relists: number;
  /** Watches after the first one, whatever ended the one before. */
  readonly reconnects: number;
  /** Lists and watches that failed. */
  readonly failures: number;
  /** Errors that the handler threw. */
  readonly handlerErrors: number;
  /** The failure that is not overcome yet. */
  readonly lastError: unknown;
}

/**
 * Keeps a handler up to date with the objects of a type: lists them once, then watches, and goes on from the last version
 * whatever happens to the connection. It lists again only when the cluster no longer knows that version, and never gives up.
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
    // Whoever does not wait for it need not handle that it stopped.
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

  /** Runs until the signal says stop. Never rejects. Once only. */
  async start(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const during = this.#version === undefined ? 'list' : 'watch';
      const begun = performance.now();
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
          (during === 'watch' && isHealthy(performance.now() - begun, this.#events > eventsBefore));
        await this.#after(error, during, healthy, signal);
      }
    }
    this.#state = 'stopped';
    this.#sync.reject(signal.reason);
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.#state = 'listing';
    const { cluster, type, pageSize = PAGE_SIZE } = this.#options;
    const { items, metadata } = await listAll(cluster, type, { ...this.#selection, limit: pageSize, signal });
    this.#lists += 1;
    this.#guard(() => this.#options.handler.replace(items, metadata.resourceVersion));
    this.#version = metadata.resourceVersion;
    this.#heard();
    if (!this.#isSynced) {
      this.#isSynced = true;
      this.#sync.resolve();
    }
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
        this.#guard(() => handler.apply(event));
        this.#events += 1;
      }
      this.#version = event.object.metadata.resourceVersion ?? this.#version;
      this.#heard();
      silence.heard();
    }
  }

  /** What follows the end of a watch, or a failure. */
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
      this.#tell(error, during);
    }
    if (during === 'watch' && this.#mustList(error)) {
      this.#version = undefined;
      this.#refusedSince = undefined;
    }
    this.#state = 'waiting';
    const asked = error instanceof ApiError ? (error.details?.retryAfterSeconds ?? 0) * 1000 : 0;
    await pause(this.#backoff.failed(performance.now(), asked), signal);
  }

  /** Whether a watch cannot go on from where it was. */
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
    return performance.now() - this.#refusedSince > (isFuture ? FUTURE_PATIENCE_MS : REFUSAL_PATIENCE_MS);
  }

  #heard(): void {
    this.#heardAt = performance.now();
    this.#lastError = undefined;
    this.#refusedSince = undefined;
  }

  #guard(call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#handlerErrors += 1;
      this.#tell(error, 'handler');
    }
  }

  #tell(error: unknown, during: 'list' | 'watch' | 'handler'): void {
    try {
      this.#options.onError?.(error, during);
    } catch {
      // Whoever is told of errors has them too; there is nobody left to tell.
    }
  }
}

/** Nothing came. There need not be anything wrong, and it was wait enough: it does not count as an outage. */
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

/** Ends a watch that is not heard of any more, or when its reflector stops. */
class SilenceAlarm implements Disposable {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = (): void => this.#controller.abort(this.#outer.reason);
  #heardAt = performance.now();

  constructor(outer: AbortSignal, limitMs: number) {
    this.#outer = outer;
    outer.addEventListener('abort', this.#onAbort, { once: true });
    // One timer that looks at a clock costs less than one that each event starts anew.
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

  heard(): void {
    this.#heardAt = performance.now();
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#outer.removeEventListener('abort', this.#onAbort);
  }
}

/** Waits, or until the signal says stop. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch {
    // Stopped: the caller looks at the signal.
  }
}
