/** Certificates that may be issued for one Secret within {@link WINDOW_MS}. */
const MAX_ISSUED = 30;
/** Milliseconds. */
const WINDOW_MS = 60_000;

/** Limits how often certificates are issued for a Secret that another process overwrites. */
export class IssueRateLimit {
  /** Times of issue by Secret. Milliseconds of any clock. */
  readonly #issued = new Map<string, readonly number[]>();

  allows(secret: string, now: number): boolean {
    return this.#recent(secret, now).length < MAX_ISSUED;
  }

  note(secret: string, now: number): void {
    this.#issued.set(secret, [...this.#recent(secret, now), now]);
  }

  #recent(secret: string, now: number): readonly number[] {
    return (this.#issued.get(secret) ?? []).filter((at) => Math.abs(now - at) < WINDOW_MS);
  }
}
