import { setImmediate } from 'node:timers/promises';

/** Longest time without a yield to the event loop. Milliseconds. */
const SLICE_MS = 10;

/**
 * Yields to the event loop between small steps of long work, so that requests are answered meanwhile. Awaiting a promise that is
 * resolved already does not yield.
 */
export class TimeSlice {
  #began = performance.now();

  /** Yields if the time slice is used up. */
  async yield(): Promise<void> {
    if (performance.now() - this.#began >= SLICE_MS) {
      await setImmediate();
      this.#began = performance.now();
    }
  }
}
