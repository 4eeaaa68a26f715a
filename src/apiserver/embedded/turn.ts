import { setImmediate } from 'node:timers/promises';

/** Milliseconds that work in many small steps takes at once: others wait no longer than this and its longest step. */
const TURN_MS = 10;

/**
 * Lets others have the event loop between small steps. Awaiting what is ready does not: whoever only waits for the store
 * takes all steps in one go.
 */
export class Turn {
  #began = performance.now();

  /** Waits until it is one's turn again, if the present one has been long enough. */
  async share(): Promise<void> {
    if (performance.now() - this.#began >= TURN_MS) {
      await setImmediate();
      this.#began = performance.now();
    }
  }
}
