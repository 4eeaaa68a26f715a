/**
 * Bytes of events that are written in one turn of the event loop: encrypting and sending as many takes some 4 ms, in which no
 * other request is answered. One event is always written. Bytes.
 */
const TURN_BYTES = 1024 * 1024;
/** What a smaller event counts: sending it takes as long. Bytes. */
const MIN_EVENT_BYTES = 4096;

/** Writes an event. Returns its bytes; 0: there is nothing to write any more. */
export type EventWrite = () => number;

/**
 * Spreads the events of all watches over turns of the event loop: one change of a large object may be for hundreds of watches.
 * Users take turns, so that the watches of one do not delay those of others.
 */
export class EventTurns {
  readonly #turnBytes: number;
  /** By user, the next one first. */
  readonly #waiting = new Map<string, EventWrite[]>();
  #left: number;
  #isTurnPlanned = false;

  constructor(turnBytes: number = TURN_BYTES) {
    this.#turnBytes = turnBytes;
    this.#left = turnBytes;
  }

  /** Writes an event of a user's watch in a turn that has room. */
  write(user: string, write: EventWrite): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const settled: EventWrite = () => {
      try {
        const bytes = write();
        resolve();
        return bytes;
      } catch (error) {
        reject(error);
        return 0;
      }
    };
    const before = this.#waiting.get(user);
    if (before === undefined) {
      this.#waiting.set(user, [settled]);
    } else {
      before.push(settled);
    }
    this.#writeAll();
    return promise;
  }

  #writeAll(): void {
    for (const [user, waiting] of this.#waiting) {
      if (this.#left <= 0) {
        return;
      }
      const next = waiting.shift();
      this.#waiting.delete(user);
      if (waiting.length > 0) {
        // The iteration comes to it again, after the other users.
        this.#waiting.set(user, waiting);
      }
      const bytes = next?.() ?? 0;
      this.#left -= bytes === 0 ? 0 : Math.max(bytes, MIN_EVENT_BYTES);
      this.#planTurn();
    }
  }

  #planTurn(): void {
    if (!this.#isTurnPlanned) {
      this.#isTurnPlanned = true;
      setImmediate(() => this.#begin());
    }
  }

  #begin(): void {
    this.#isTurnPlanned = false;
    this.#left = this.#turnBytes;
    this.#writeAll();
  }
}
