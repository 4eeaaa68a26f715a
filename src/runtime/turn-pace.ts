import { setImmediate as turn } from 'node:timers/promises';
import { type Clock, pause } from './clock.ts';

/** A shorter turn of the event loop delays nobody. Milliseconds. */
const SHORT_TURN_MS = 5;
/** Longest wait for other work, so that reconciliations go on however busy the process is. Milliseconds. */
const MAX_WAIT_MS = 100;

/**
 * Leaves time to the other work of a process, such as the requests that it answers. One start in each turn of the event loop: with a
 * cluster in the same process, whole reconciliations take no I/O, and would follow each other in one turn. After a long turn, the next
 * start waits as long again, so that starts use at most half of a busy thread.
 */
export class TurnPace {
  readonly #clock: Clock;
  #last: Promise<void> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
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
    if (took > SHORT_TURN_MS) {
      await pause(this.#clock, Math.min(took, MAX_WAIT_MS), signal);
    }
  }
}
