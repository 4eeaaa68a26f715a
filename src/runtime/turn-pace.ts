import { setImmediate as turn } from 'node:timers/promises';
import { type Clock, pause } from './clock.ts';

/** A shorter turn of the event loop delays nobody. Milliseconds. */
const SHORT_TURN_MS = 5;
/** Longest wait for other work, so that reconciliations go on however busy the process is. Milliseconds. */
const MAX_WAIT_MS = 100;
/** So long may long turns take until starts wait. A few policies that are applied together take less. Milliseconds. */
const CREDIT_MS = 500;
/** Share of the time that becomes new credit. */
const CREDIT_RATE = 0.05;

/**
 * Leaves time to the other work of a process, such as the requests that it answers. One start in each turn of the event loop: with a
 * cluster in the same process, whole reconciliations take no I/O, and would follow each other in one turn. Where long turns follow
 * each other for more than {@link CREDIT_MS}, the next start waits as long as the turn before it took, so that starts use at most half
 * of a busy thread.
 */
export class TurnPace {
  readonly #clock: Clock;
  #last: Promise<void> = Promise.resolve();
  #creditMs = CREDIT_MS;
  #countedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#countedAt = clock.now();
  }

  /** Resolves when the caller may start, in the order of calls; early when `signal` is aborted. */
  next(signal: AbortSignal): Promise<void> {
    this.#last = this.#last.then(() => this.#wait(signal));
    return this.#last;
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const began = this.#clock.now();
    await turn();
    const took = this.#clock.now() - began;
    if (took > SHORT_TURN_MS && !this.#spend(took)) {
      await pause(this.#clock, Math.min(took, MAX_WAIT_MS), signal);
    }
  }

  /** Whether the credit covers a turn. */
  #spend(ms: number): boolean {
    const now = this.#clock.now();
    this.#creditMs = Math.min(this.#creditMs + (now - this.#countedAt) * CREDIT_RATE, CREDIT_MS);
    this.#countedAt = now;
    const isCovered = this.#creditMs >= ms;
    this.#creditMs = Math.max(this.#creditMs - ms, 0);
    return isCovered;
  }
}
