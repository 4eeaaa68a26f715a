import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { ApiError } from '../cluster/index.ts';
import type { Cluster } from '../cluster/index.ts';
import { knownKind } from '../resources/index.ts';
import type { JsonObject, KubernetesObject, ResourceType } from '../resources/index.ts';
import { errorText } from '../values/index.ts';
import { pause, SYSTEM_CLOCK } from './clock.ts';
import type { Clock } from './clock.ts';
import { EventCorrelator } from './event-correlator.ts';
import type { EventRecord, EventType } from './event-correlator.ts';
import type { EventResult, RuntimeMetrics } from './metrics.ts';
import type { Runnable } from './runnable.ts';
import { withinTime } from './time-limit.ts';

export const EVENTS: ResourceType = knownKind('v1', 'Event');

/** Events that wait to be written: about 1 MiB, enough for a cluster that is away for a minute. */
export const MAX_PENDING_EVENTS = 1_000;
/** Attempts for one write. */
const MAX_EVENT_TRIES = 5;
/** Delay before the second attempt; doubles with each one. Milliseconds. */
const EVENT_RETRY_MS = 1_000;
/** Time limit of one write. Milliseconds. */
const EVENT_TIMEOUT_MS = 10_000;
/** Time for pending writes when the recorder stops. Milliseconds. */
const EVENT_FLUSH_MS = 2_000;
/** Longest name of a Kubernetes object. */
const MAX_NAME_LENGTH = 253;

/** Accepts events about objects. Never throws, never blocks. */
export interface EventSink {
  /** `reason` is CamelCase and short; `message` is for people. */
  event(object: KubernetesObject, type: EventType, reason: string, message: string): void;
}

export interface EventRecorderOptions {
  readonly cluster: Cluster;
  /** `source.component`, such as `portcullis-controller`. */
  readonly component: string;
  /** `reportingInstance`: the process. Default: empty. */
  readonly instance?: string;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  readonly clock?: Clock;
}

/**
 * Writes events for `kubectl describe` and `kubectl get events`: core/v1, one object for repeated events, with a count.
 * Accepts events at any time, and writes them one after the other while it runs.
 */
export class EventRecorder implements EventSink, Runnable {
  readonly name = 'events';
  readonly #options: EventRecorderOptions;
  readonly #clock: Clock;
  readonly #correlator = new EventCorrelator();
  /** In the order of writing. */
  readonly #pending = new Set<EventRecord>();
  #wake: (() => void) | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
  }

  event(object: KubernetesObject, type: EventType, reason: string, message: string): void {
    try {
      const record = this.#correlator.correlate(object, type, reason, message, this.#clock.date());
      if (record === undefined) {
        this.#count('suppressed');
      } else if (this.#pending.has(record)) {
        this.#count('repeated');
      } else if (this.#pending.size >= MAX_PENDING_EVENTS) {
        this.#count('dropped');
      } else {
        this.#pending.add(record);
        this.#wake?.();
      }
    } catch (error) {
      // A failure to report must not fail the caller.
      this.#options.log.error({ error: errorText(error) }, 'event not taken');
    }
  }

  /** Writes events until `signal` is aborted, then the pending ones within {@link EVENT_FLUSH_MS}. */
  async start(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#writeAll(signal);
      await this.#nextEvent(signal);
    }
    const flush = new AbortController();
    const cancel = this.#clock.after(EVENT_FLUSH_MS, () => flush.abort());
    await this.#writeAll(flush.signal);
    cancel();
  }

  #nextEvent(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#wake = undefined;
        signal.removeEventListener('abort', end);
        resolve();
      };
      this.#wake = end;
      signal.addEventListener('abort', end);
      if (signal.aborted || this.#pending.size > 0) {
        end();
      }
    });
  }

  async #writeAll(signal: AbortSignal): Promise<void> {
    for (const record of this.#pending) {
      if (signal.aborted) {
        return;
      }
      // Removed before the write: an event that repeats during the write is written again.
      this.#pending.delete(record);
      const isWritten = await this.#write(record, signal);
      if (!isWritten && signal.aborted && this.#pending.size < MAX_PENDING_EVENTS) {
        // The flush tries once more.
        this.#pending.add(record);
        return;
      }
    }
  }

  async #write(record: EventRecord, signal: AbortSignal): Promise<boolean> {
    for (let tries = 1; ; tries++) {
      try {
        await withinTime(this.#clock, EVENT_TIMEOUT_MS, signal, (limit) => this.#send(record, limit));
        return true;
      } catch (error) {
        if (signal.aborted) {
          return false;
        }
        if (tries >= MAX_EVENT_TRIES || !isWorthRetrying(error)) {
          const { reason, about } = record;
          const { namespace, name, kind } = about;
          this.#options.log.warn({ kind, namespace, name, reason, error: errorText(error) }, 'event not written');
          this.#count('failed');
          return false;
        }
        await pause(this.#clock, EVENT_RETRY_MS * 2 ** (tries - 1), signal);
      }
    }
  }

  async #send(record: EventRecord, signal: AbortSignal): Promise<void> {
    if (record.name !== undefined && (await this.#repeat(record, record.name, signal))) {
      this.#count('repeated');
    } else {
      await this.#create(record, signal);
      this.#count('written');
    }
  }

  /** Increases the count of an existing event. False if it is gone: the cluster keeps events for an hour. */
  async #repeat({ about, count, lastAt, message }: EventRecord, name: string, signal: AbortSignal): Promise<boolean> {
    const body: JsonObject = { count, lastTimestamp: timestamp(lastAt), message };
    try {
      await this.#options.cluster.patch(
        EVENTS,
        { namespace: namespaceOf(about), name },
        { type: 'merge', body },
        { signal },
      );
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.reason === 'NotFound') {
        return false;
      }
      throw error;
    }
  }

  async #create(record: EventRecord, signal: AbortSignal): Promise<void> {
    const { about, type, reason, message, count, firstAt, lastAt } = record;
    const { component, instance = '' } = this.#options;
    const name = eventName(about.name);
    await this.#options.cluster.create(
      EVENTS,
      {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { namespace: namespaceOf(about), name },
        involvedObject: about,
        type,
        reason,
        message,
        count,
        firstTimestamp: timestamp(firstAt),
        lastTimestamp: timestamp(lastAt),
        source: { component },
        reportingComponent: component,
        reportingInstance: instance,
      },
      { signal },
    );
    record.name = name;
  }

  #count(result: EventResult): void {
    this.#options.metrics?.event(result);
  }
}

/** kubectl looks for events of cluster-scoped objects in `default`. */
function namespaceOf({ namespace }: { readonly namespace?: string }): string {
  return namespace ?? 'default';
}

/** The object's name, as far as it is valid for an event, and a random suffix. */
function eventName(objectName: string): string {
  const unique = `.${randomBytes(8).toString('hex')}`;
  const safe = objectName
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]/g, '-')
    .slice(0, MAX_NAME_LENGTH - unique.length)
    .split('.')
    .map((label) => label.replaceAll(/^-+|-+$/g, ''))
    .filter((label) => label !== '')
    .join('.');
  return (safe === '' ? 'event' : safe) + unique;
}

/** `metav1.Time` */
function timestamp(date: number): string {
  return `${new Date(date).toISOString().slice(0, 19)}Z`;
}

/** Whether a retry can succeed: false when the cluster rejected the event itself. */
function isWorthRetrying(error: unknown): boolean {
  return !(error instanceof ApiError) || error.code === 429 || error.code >= 500;
}
