/** Certificates that are made for one Secret within {@link WINDOW_MS}: more is a fight with somebody else who writes it. */
const MAX_ISSUED = 30;
/** Milliseconds. */
const WINDOW_MS = 60_000;

/** Keeps two that do not agree about a Secret from writing it as fast as they can. */
export class IssueRestraint {
  /** When certificates were made, by Secret. Milliseconds of any clock. */
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
