/** Interval between two writes about one exception, so that one that is used all the time costs few. Milliseconds. */
const EXCEPTION_INTERVAL_MS = 60_000;
/** Interval between writes about all exceptions in the long run: ten thousand that are used all the time are current to 17 minutes. */
export const WRITE_INTERVAL_MS = 100;
/** Writes at once: what begins to be used together. */
export const WRITES_AT_ONCE = 100;

/** When the uses of exceptions may be written: one exception once in an interval, and all of them at a limited rate. */
export class UsePace {
  readonly #intervalMs: number;
  /** By `metadata.uid`. Milliseconds of a monotonic clock, as below. */
  readonly #turns = new Map<string, { readonly at: number; readonly isReserved: boolean }>();
  /** The time of the next write if all of them came at an even rate. */
  #next = 0;

  constructor(intervalMs: number = EXCEPTION_INTERVAL_MS) {
    this.#intervalMs = intervalMs;
  }

  /**
   * The delay until the uses of an exception may be written; 0: now.
   * @param isUrgent the interval of the exception does not count
   */
  delayMs(uid: string, now: number, isUrgent = false): number {
    const { at = now, isReserved = false } = this.#turns.get(uid) ?? {};
    if (isReserved || (at > now && !isUrgent)) {
      return Math.max(0, at - now);
    }
    const reserved = this.#reserve(now);
    this.#turns.set(uid, { at: reserved, isReserved: true });
    return reserved - now;
  }

  /** The uses of an exception were written. */
  written(uid: string, now: number): void {
    this.#turns.set(uid, { at: now + this.#intervalMs, isReserved: false });
  }

  /** Forgets a deleted exception. */
  forget(uid: string): void {
    this.#turns.delete(uid);
  }

  #reserve(now: number): number {
    this.#next = Math.max(this.#next, now - WRITES_AT_ONCE * WRITE_INTERVAL_MS) + WRITE_INTERVAL_MS;
    return Math.max(now, this.#next);
  }
}
