// Rate limit of writes: a single change is written at once, a stream of changes with few writes.

/** Minimum gaps before the first, second, … write of a stream: 1,000 policies take five writes. Milliseconds. */
const WRITE_GAPS_MS: readonly number[] = [0, 1_000, 3_000, 9_000, 15_000];
/** A pause of this length triggers a write, {@link QUIET_GAP_MS} or more after the last one. Milliseconds. */
const QUIET_MS = 400;
/**
 * Minimum gap before a write after a pause. It doubles each time, so that a slow stream with many pauses takes few writes.
 * Milliseconds.
 */
const QUIET_GAP_MS = 250;
const MAX_QUIET_GAP_MS = 8_000;
/** Time without a change after which a new stream begins. Milliseconds. */
export const IDLE_MS = 3_000;

/** All times are milliseconds of a monotonic clock. */
export class WritePace {
  readonly #factor: number;
  #lastWrite = -Infinity;
  #lastChange = -Infinity;
  /** Writes of this stream so far. */
  #count = 0;

  /** @param factor scales all times */
  constructor(factor: number = 1) {
    this.#factor = factor;
  }

  /** Notes a change. @returns the time until its write */
  recordChange(now: number): number {
    this.#restart(now);
    this.#lastChange = now;
    return this.wait(now);
  }

  /** Time until the next write; 0: now. */
  wait(now: number): number {
    const gap = WRITE_GAPS_MS[Math.min(this.#count, WRITE_GAPS_MS.length - 1)] ?? 0;
    const due = this.#lastWrite + gap * this.#factor;
    const quiet = Math.max(
      this.#lastChange + QUIET_MS * this.#factor,
      this.#lastWrite + Math.min(QUIET_GAP_MS * 2 ** (this.#count - 1), MAX_QUIET_GAP_MS) * this.#factor,
    );
    return this.#count === 0 ? 0 : Math.max(0, Math.min(due, quiet) - now);
  }

  recordWrite(now: number): void {
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
