/** How long a policy counts as slow. Milliseconds. */
const SLOW_LANE_MS = 60_000;

/** Policies that occupied workers for long, or timed out, within {@link SLOW_LANE_MS}. */
export class SlowPolicies {
  readonly #until = new Map<string, number>();

  /** Marks a policy as slow from now on. */
  add(id: string): void {
    this.#until.set(id, performance.now() + SLOW_LANE_MS);
  }

  delete(id: string): void {
    this.#until.delete(id);
  }

  /** Upper bound of their number. */
  get size(): number {
    return this.#until.size;
  }

  has(id: string): boolean {
    const until = this.#until.get(id);
    if (until !== undefined && until < performance.now()) {
      this.#until.delete(id);
      return false;
    }
    return until !== undefined;
  }

  /** The slow policies that pass a test; null: none. */
  those(holds: (id: string) => boolean): string[] | null {
    if (this.#until.size === 0) {
      return null;
    }
    const found = [...this.#until.keys()].filter((id) => this.has(id) && holds(id));
    return found.length === 0 ? null : found;
  }
}
