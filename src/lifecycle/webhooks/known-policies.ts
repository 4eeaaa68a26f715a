/**
 * Of which policies a controller knows what is to be asked about them. One that has just begun knows of none, and leaves
 * nothing out until it knows of all.
 */
export class KnownPolicies {
  /** Policies of which everything is known since the start. */
  readonly #known = new Set<string>();
  /** Those that nothing is to be asked about any more. */
  readonly #dismissed = new Set<string>();
  /** Those that are another controller's. */
  readonly #foreign = new Set<string>();
  /** Policies of which something is yet to be known. Undefined: nobody knows yet which there are. */
  #expected: Set<string> | undefined;

  /** Whether everything is known. */
  get isComplete(): boolean {
    return this.#expected?.size === 0;
  }

  /** All policies that there are. */
  expect(ids: Iterable<string>): void {
    this.#expected = new Set(ids);
    for (const id of this.#known) {
      this.#expected.delete(id);
    }
  }

  /** Whether it was the last that something had to be known of. */
  know(id: string): boolean {
    if (this.isComplete) {
      return false;
    }
    this.#known.add(id);
    return this.#expected?.delete(id) === true && this.isComplete;
  }

  /** Something is to be asked about it. */
  keep(id: string): void {
    this.#dismissed.delete(id);
    this.#foreign.delete(id);
  }

  dismiss(id: string): void {
    this.#foreign.delete(id);
    if (!this.isComplete) {
      this.#dismissed.add(id);
    }
  }

  isDismissed(id: string): boolean {
    return this.#dismissed.has(id);
  }

  leaveAlone(id: string): void {
    this.#foreign.add(id);
  }

  isForeign(id: string): boolean {
    return this.#foreign.has(id);
  }

  dismissed(): Iterable<string> {
    return this.#dismissed;
  }

  /** What was only to be remembered until everything was known. */
  completed(): void {
    this.#known.clear();
    this.#dismissed.clear();
  }

  clear(): void {
    this.completed();
    this.#foreign.clear();
    this.#expected = undefined;
  }
}
