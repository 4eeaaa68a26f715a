import { setImmediate as turn } from 'node:timers/promises';
import type { Clock } from '../../runtime/index.ts';

const STEP_MS = 100;
/** Turns of the event loop after each step: a request to an embedded cluster takes some. */
const TURNS = 20;

/** A clock that only a test moves on; it starts at the beginning of 2030. */
export class SteppedClock implements Clock {
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void }>();
  #now = 0;

  now(): number {
    return this.#now;
  }

  date(): number {
    return Date.UTC(2030, 0, 1) + this.#now;
  }

  after(ms: number, callback: () => void): () => void {
    const timer = { at: this.#now + ms, callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Moves on in steps, between which promises go on. */
  async pass(ms: number): Promise<void> {
    for (const end = this.#now + ms; this.#now < end; this.#now += STEP_MS) {
      for (const timer of this.#timers) {
        if (timer.at <= this.#now) {
          this.#timers.delete(timer);
          timer.callback();
        }
      }
      for (let count = 0; count < TURNS; count += 1) {
        await turn();
      }
    }
  }
}
