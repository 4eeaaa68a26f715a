// When configurations are written: a change at once, a stream of changes in few writes.

/** How long the first, second … write of a stream of changes waits for the one before: 1,000 policies take five. Milliseconds. */
export const WRITE_GAPS_MS: readonly number[] = [0, 1_000, 3_000, 9_000, 15_000];
/** A stream that pauses for so long is written at once, unless that happens too often. Milliseconds. */
export const QUIET_MS = 400;
/**
 * How long such a write waits for the last one: each time twice as long, so that a slow stream with many pauses takes few
 * writes, too. Milliseconds.
 */
const QUIET_GAP_MS = 250;
const MAX_QUIET_GAP_MS = 8_000;
/** After so long without a change the next one is the first of its stream. Milliseconds. */
export const IDLE_MS = 3_000;

/** Times are milliseconds of a clock that does not go back. */
export class WritePace {
  readonly #factor: number;
  #lastWrite = -Infinity;
  #lastChange = -Infinity;
  /** Writes of this stream so far. */
  #count = 0;

  /** @param factor by which all times are longer */
  constructor(factor: number = 1) {
    this.#factor = factor;
  }

  /** There is something to write. How long to wait. */
  changed(now: number): number {
    this.#restart(now);
    this.#lastChange = now;
    return this.wait(now);
  }

  /** How long to wait before what there is to write is written; 0: now. */
  wait(now: number): number {
    const gap = WRITE_GAPS_MS[Math.min(this.#count, WRITE_GAPS_MS.length - 1)] ?? 0;
    const due = this.#lastWrite + gap * this.#factor;
    const quiet = Math.max(
      this.#lastChange + QUIET_MS * this.#factor,
      this.#lastWrite + Math.min(QUIET_GAP_MS * 2 ** (this.#count - 1), MAX_QUIET_GAP_MS) * this.#factor,
    );
    return this.#count === 0 ? 0 : Math.max(0, Math.min(due, quiet) - now);
  }

  wrote(now: number): void {
    this.#restart(now);
    this.#lastWrite = now;
    this.#count += 1;
  }

  #restart(now: number): void {
    if (now - Math.max(this.#lastChange, this.#lastWrite) >= IDLE_MS * this.#factor) {
      this.#count = 0;
    }
  }
}
