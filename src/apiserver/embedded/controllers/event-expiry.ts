import { setImmediate } from 'node:timers/promises';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { CollectionStore, StoreWrite } from '../store/collection-store.ts';

/** Events expire an hour after their last write (`--event-ttl` of API servers). */
export const EVENT_TTL_MS = 3_600_000;

const EVENTS = 'events';

/** Number of events that are removed in one transaction. It takes a few milliseconds. */
const BATCH_SIZE = 100;

/** Interval between sweeps. Milliseconds. */
const INTERVAL_MS = 60_000;

/** Removes expired events. */
export class EventExpiry {
  readonly #store: CollectionStore;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;
  #sweeping: Promise<void> | undefined;
  #isClosed = false;

  constructor(store: CollectionStore, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  start(): void {
    this.#begin();
    this.#timer = setInterval(() => this.#begin(), INTERVAL_MS);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#sweeping;
  }

  #begin(): void {
    this.#sweeping ??= this.#sweep().finally(() => (this.#sweeping = undefined));
  }

  /** Removes the expired events, in batches. */
  async #sweep(): Promise<void> {
    const oldest = this.#now() - EVENT_TTL_MS;
    const old = [...this.#store.collection(EVENTS).list()].filter((event) => lastTime(event) < oldest);
    for (let start = 0; start < old.length && !this.#isClosed; start += BATCH_SIZE) {
      try {
        this.#remove(old.slice(start, start + BATCH_SIZE));
      } catch {
        // The file cannot be written now. The next sweep tries again.
        return;
      }
      await setImmediate();
    }
  }

  /** Removes the events that have not changed since they were listed. */
  #remove(events: readonly KubernetesObject[]): void {
    const writes = events
      .filter((event) => this.#store.get(EVENTS, event.metadata.namespace ?? '', event.metadata.name ?? '') === event)
      .map((expected): StoreWrite => ({ type: 'remove', collection: EVENTS, expected }));
    if (writes.length > 0) {
      this.#store.commit(writes);
    }
  }
}

/**
 * The time of the last write, from timestamps that the server sets. Milliseconds since 1970. Times that clients set are
 * ignored, because an event with a time in the future would never expire.
 */
function lastTime({ metadata }: KubernetesObject): number {
  const times = [metadata.creationTimestamp, ...(metadata.managedFields ?? []).map(({ time }) => time)];
  return Math.max(
    ...times.map((time) => (typeof time === 'string' ? Date.parse(time) : Number.NaN)).filter(Number.isFinite),
  );
}
