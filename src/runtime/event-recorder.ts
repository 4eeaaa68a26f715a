import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { ApiError } from '../cluster/index.ts';
import type { Cluster } from '../cluster/index.ts';
import type { JsonObject, KubernetesObject, ResourceType } from '../resources/index.ts';
import { errorText } from '../values/index.ts';
import { pause, SYSTEM_CLOCK } from './clock.ts';
import type { Clock } from './clock.ts';
import { EventCorrelator } from './event-correlator.ts';
import type { EventRecord, EventType } from './event-correlator.ts';
import type { EventFate, RuntimeMetrics } from './metrics.ts';
import type { Runnable } from './runnable.ts';
import { withinTime } from './time-limit.ts';

export const EVENTS: ResourceType = { group: '', version: 'v1', resource: 'events', kind: 'Event', namespaced: true };

/** Events that wait to be written: what a cluster that is away for a minute leaves behind; about 1 MiB. */
export const MAX_PENDING_EVENTS = 1_000;
/** How often one write is tried. */
export const MAX_EVENT_TRIES = 5;
/** Wait before the second try; doubles with each one. Milliseconds. */
export const EVENT_RETRY_MS = 1_000;
/** Longest wait for one write. Milliseconds. */
export const EVENT_TIMEOUT_MS = 10_000;
/** Time that writes have when the recorder is stopped. Milliseconds. */
export const EVENT_FLUSH_MS = 2_000;
/** Longest name of an object. */
const MAX_NAME_LENGTH = 253;

/** Takes events about objects. Never throws, never waits. */
export interface EventSink {
  /** `reason` is CamelCase and short; `message` is for people. */
  event(object: KubernetesObject, type: EventType, reason: string, message: string): void;
}

export interface EventRecorderOptions {
  readonly cluster: Cluster;
  /** Who reports: `portcullis-controller`. */
  readonly component: string;
  /** Which process of it. Default: empty. */
  readonly instance?: string;
  readonly log: Logger;
  readonly metrics?: RuntimeMetrics;
  readonly clock?: Clock;
}

/**
 * Writes events for `kubectl describe` and `kubectl get events`: core/v1, one object for an event however often it happens,
 * with a count. Events are taken at any time and written while the recorder runs, one after the other.
 */
export class EventRecorder implements EventSink, Runnable {
  readonly name = 'events';
  readonly #options: EventRecorderOptions;
  readonly #clock: Clock;
  readonly #correlator = new EventCorrelator();
  /** In the order in which they are written. */
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
        this.#tell('suppressed');
      } else if (this.#pending.has(record)) {
        this.#tell('repeated');
      } else if (this.#pending.size >= MAX_PENDING_EVENTS) {
        this.#tell('dropped');
      } else {
        this.#pending.add(record);
        this.#wake?.();
      }
    } catch (error) {
      // Whoever reports something has better to do than to care for the report.
      this.#options.log.error({ error: errorText(error) }, 'event not taken');
    }
  }

  /** Writes events until `signal` is aborted, and then what waits, within {@link EVENT_FLUSH_MS}. */
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
      // Out before it is written: what happens meanwhile is written again.
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
          this.#tell('failed');
          return false;
        }
        await pause(this.#clock, EVENT_RETRY_MS * 2 ** (tries - 1), signal);
      }
    }
  }

  async #send(record: EventRecord, signal: AbortSignal): Promise<void> {
    if (record.name !== undefined && (await this.#repeat(record, record.name, signal))) {
      this.#tell('repeated');
    } else {
      await this.#create(record, signal);
      this.#tell('written');
    }
  }

  /** Counts up the event that is in the cluster. False: it is no longer there, events are kept for an hour. */
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

  #tell(fate: EventFate): void {
    this.#options.metrics?.event(fate);
  }
}

/** Events of objects without a namespace are in `default`, where kubectl looks for them. */
function namespaceOf({ namespace }: { readonly namespace?: string }): string {
  return namespace ?? 'default';
}

/** The object's name as far as it may be one of an event, and what makes it unique. */
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

/** Not what the cluster understood and refused: it would again. */
function isWorthRetrying(error: unknown): boolean {
  return !(error instanceof ApiError) || error.code === 429 || error.code >= 500;
}
