import type { KubernetesObject } from '../../../resources/index.ts';
import type { ObjectStore } from '../store/object-store.ts';

/** Events are forgotten an hour after they last changed (`--event-ttl` of API servers). */
export const EVENT_TTL_MS = 3_600_000;

/** How often they are looked at. */
const INTERVAL_MS = 60_000;

/** Removes old events. */
export class EventExpiry {
  readonly #store: ObjectStore;
  readonly #now: () => number;
  #timer: NodeJS.Timeout | undefined;

  constructor(store: ObjectStore, now: () => number) {
    this.#store = store;
    this.#now = now;
  }

  start(): void {
    this.sweep();
    this.#timer = setInterval(() => this.sweep(), INTERVAL_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  sweep(): void {
    const oldest = this.#now() - EVENT_TTL_MS;
    for (const event of Array.from(this.#store.collection('events').list())) {
      if (lastTime(event) < oldest) {
        try {
          this.#store.commit([{ type: 'remove', collection: 'events', expected: event }]);
        } catch {
          // The file cannot be written just now: the next round tries again.
          return;
        }
      }
    }
  }
}

/** When an event last changed, as far as it says so. Milliseconds since 1970. */
function lastTime({ metadata, lastTimestamp, series }: KubernetesObject): number {
  const { lastObservedTime } = (series ?? {}) as { lastObservedTime?: unknown };
  const times = [
    metadata.creationTimestamp,
    ...(metadata.managedFields ?? []).map(({ time }) => time),
    lastTimestamp,
    lastObservedTime,
  ];
  return Math.max(
    ...times.map((time) => (typeof time === 'string' ? Date.parse(time) : Number.NaN)).filter(Number.isFinite),
  );
}
