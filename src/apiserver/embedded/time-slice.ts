import { setImmediate } from 'node:timers/promises';

/** Time slice of work in small steps. Milliseconds. */
const SLICE_MS = 10;

/**
 * Yields the event loop between small steps of long work. Awaiting resolved promises does not yield: work that awaits only
 * the store would run to its end.
 */
export class TimeSlice {
  #began = performance.now();

  /** Yields when the time slice is used up. */
  async yield(): Promise<void> {
    if (performance.now() - this.#began >= SLICE_MS) {
      await setImmediate();
      this.#began = performance.now();
    }
  }
}
