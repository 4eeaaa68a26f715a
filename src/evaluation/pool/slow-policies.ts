/** How long a policy stays in the slow lane, where all such policies together leave one worker free. Milliseconds. */
export const SLOW_LANE_MS = 60_000;

/** Policies that held workers for long, or had to be cut off, not long ago. */
export class SlowPolicies {
  readonly #until = new Map<string, number>();

  /** A policy was slow just now. */
  add(id: string): void {
    this.#until.set(id, performance.now() + SLOW_LANE_MS);
  }

  delete(id: string): void {
    this.#until.delete(id);
  }

  /** How many there are at most. */
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

  /** Those of which something holds; null when there is none. */
  those(holds: (id: string) => boolean): string[] | null {
    if (this.#until.size === 0) {
      return null;
    }
    const found = [...this.#until.keys()].filter((id) => this.has(id) && holds(id));
    return found.length === 0 ? null : found;
  }
}
