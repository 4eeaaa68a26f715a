/** No wait is shorter. Milliseconds. */
export const BACKOFF_FLOOR_MS = 250;
/** No wait is longer, so that a cluster that was away for hours is found again within half a minute. Milliseconds. */
export const BACKOFF_CAP_MS = 30_000;
/** A wait is at most this share of the time that the outage has lasted: then whoever waits is late by that share at most. */
const OUTAGE_SHARE = 0.15;

/**
 * Waits between attempts that grow with the outage (which is exponential in the number of attempts), each drawn from the
 * upper half of its range, so that clients which failed together do not come back together.
 */
export class Backoff {
  readonly #random: () => number;
  #failingSince: number | undefined;

  /** @param random from 0 to below 1 */
  constructor(random: () => number = Math.random) {
    this.#random = random;
  }

  /**
   * How long to wait after a failure, in milliseconds.
   * @param now milliseconds of a clock that does not go back
   * @param atLeastMs what the server asked for (Retry-After)
   */
  failed(now: number, atLeastMs = 0): number {
    this.#failingSince ??= now;
    const bound = Math.min(BACKOFF_CAP_MS, Math.max(BACKOFF_FLOOR_MS, (now - this.#failingSince) * OUTAGE_SHARE));
    const wait = bound * (0.5 + this.#random() / 2);
    return Math.max(wait, atLeastMs * (1 + this.#random() / 2));
  }

  /** What failed works: the next failure begins a new outage. */
  reset(): void {
    this.#failingSince = undefined;
  }
}
