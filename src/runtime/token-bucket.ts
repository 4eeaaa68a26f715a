export interface TokenBucketOptions {
  /** Tokens that come back in a second. */
  readonly perSecond: number;
  /** Tokens of a full bucket: how many may be taken at once. */
  readonly burst: number;
}

/** Lets so many things a second pass, and a burst of them when it was quiet before. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  /** Negative while tokens are owed. */
  #tokens: number;
  #filledAt: number | undefined;

  constructor({ perSecond, burst }: TokenBucketOptions) {
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#tokens = burst;
  }

  /** Takes a token that may be there only later. Returns how long to wait for it, in milliseconds. */
  reserve(now: number): number {
    this.#fill(now);
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : -this.#tokens / this.#perMs;
  }

  /** Takes a token if there is one. */
  take(now: number): boolean {
    this.#fill(now);
    if (this.#tokens < 1) {
      return false;
    }
    this.#tokens -= 1;
    return true;
  }

  #fill(now: number): void {
    // A clock that was put back must not take tokens away.
    const elapsed = Math.max(0, now - (this.#filledAt ?? now));
    this.#tokens = Math.min(this.#burst, this.#tokens + elapsed * this.#perMs);
    this.#filledAt = now;
  }
}
