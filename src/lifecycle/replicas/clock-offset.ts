/** Largest difference of clocks that is not reported: synchronized ones differ by a tenth of that. Milliseconds. */
export const MAX_CLOCK_OFFSET_MS = 2_000;

/** How far the clock of a replica is ahead of that of this process, from the times in its messages. */
export class ClockOffset {
  readonly #windowMs: number;
  #best = -Infinity;
  #windowEnd: number | undefined;
  #ms: number | undefined;

  /** @param windowMs messages of this time are compared */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /** Whole seconds in milliseconds; negative: it is behind. 0: the clocks agree. Undefined: not known. */
  get ms(): number | undefined {
    return this.#ms;
  }

  /**
   * Notes a message. Returns whether {@link ms} has changed.
   * @param time in the message, and `now` when it was read: milliseconds since 1970
   * @param at `now` of a monotonic clock
   */
  note(time: number, now: number, at: number): boolean {
    this.#windowEnd ??= at + this.#windowMs;
    // A message that was held up seems to be from a clock that is behind.
    this.#best = Math.max(this.#best, time - now);
    if (at < this.#windowEnd) {
      return false;
    }
    const before = this.#ms;
    this.#ms = settled(this.#best, before);
    this.#best = -Infinity;
    this.#windowEnd = at + this.#windowMs;
    return (before ?? 0) !== this.#ms;
  }
}

/** Stays the same while it differs by less than the limit, so that a difference is not told again each time. */
function settled(measured: number, before: number | undefined): number {
  const isKept = before !== undefined && before !== 0 && Math.abs(measured - before) <= MAX_CLOCK_OFFSET_MS;
  if (Math.abs(measured) <= MAX_CLOCK_OFFSET_MS) {
    return 0;
  }
  return isKept ? before : Math.round(measured / 1_000) * 1_000;
}
