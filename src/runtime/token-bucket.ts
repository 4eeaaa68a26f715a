export interface TokenBucketOptions {
  /** Tokens that are refilled per second. */
  readonly perSecond: number;
  /** Size of the bucket. */
  readonly burst: number;
}

/** A token bucket: limits a rate, and allows a burst. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  /** Negative while tokens are reserved in advance. */
  #tokens: number;
  #filledAt: number | undefined;

  constructor({ perSecond, burst }: TokenBucketOptions) {
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#tokens = burst;
  }

  /** Takes a token, in advance if there is none. Returns the wait in milliseconds. */
  reserve(now: number): number {
    this.#fill(now);
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#perMs;
  }

  /** Takes tokens if there are so many. */
  take(now: number, count = 1): boolean {
    this.#fill(now);
    if (this.#tokens < count) {
      return false;
    }
    this.#tokens -= count;
    return true;
  }

  /** Whether it is as a new one. */
  isFull(now: number): boolean {
    this.#fill(now);
    return this.#tokens === this.#burst;
  }

  #fill(now: number): void {
    // A clock that goes back must not remove tokens.
    const elapsed = Math.max(0, now - (this.#filledAt ?? now));
    this.#tokens = Math.min(this.#burst, this.#tokens + elapsed * this.#perMs);
    this.#filledAt = now;
  }
}
