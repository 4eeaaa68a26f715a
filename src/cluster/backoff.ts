/** Shortest wait. Milliseconds. */
export const BACKOFF_FLOOR_MS = 250;
/** Longest wait: a cluster that returns after hours is found within half a minute. Milliseconds. */
export const BACKOFF_CAP_MS = 30_000;
/** Longest wait as a share of the outage so far, which bounds how late a client notices that the cluster is back. */
const OUTAGE_SHARE = 0.15;

/**
 * Exponential backoff. Each wait is drawn from the upper half of its range, so that clients which failed together do not
 * retry together.
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
   * @param atLeastMs the server's Retry-After
   */
  failed(now: number, atLeastMs = 0): number {
    this.#failingSince ??= now;
    const bound = Math.min(BACKOFF_CAP_MS, Math.max(BACKOFF_FLOOR_MS, (now - this.#failingSince) * OUTAGE_SHARE));
    const wait = bound * (0.5 + this.#random() / 2);
    return Math.max(wait, atLeastMs * (1 + this.#random() / 2));
  }

  /** Called after a success: the next failure starts a new outage. */
  reset(): void {
    this.#failingSince = undefined;
  }
}
