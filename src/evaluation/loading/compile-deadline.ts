import type { Running } from '../evaluation-protocol.ts';
import { COMPILE_TIMEOUT_MS } from './load-request.ts';

/** A thread that gets less than this share of a processor is not waited for. */
const MAX_SLOWDOWN = 15;

/**
 * The deadline of a compilation in processor time of its thread. So a machine that is busy with others refuses no module, and neither
 * does a trial in another process, which has limits of its own.
 */
export class CompileDeadline {
  #begun: { readonly since: number; readonly cpuMs: number | undefined } | undefined;

  /**
   * Called at each check of the thread.
   * @param cpuMs reads the processor time of the thread, which is asked once for what runs; undefined where the system does not tell
   */
  see(running: Running | undefined, cpuMs: () => number | undefined): void {
    if (running !== undefined && running.since !== this.#begun?.since) {
      this.#begun = { since: running.since, cpuMs: cpuMs() };
    }
  }

  /**
   * Whether what runs may go on after its deadline.
   * @param now as `since` of what runs
   */
  isAhead({ since }: Running, cpuMs: number | undefined, now: number): boolean {
    const begunMs = this.#begun?.since === since ? this.#begun.cpuMs : undefined;
    return (
      cpuMs !== undefined &&
      begunMs !== undefined &&
      cpuMs - begunMs < COMPILE_TIMEOUT_MS &&
      now - since < COMPILE_TIMEOUT_MS * MAX_SLOWDOWN
    );
  }
}
