import { KeptEntries } from '../../values/index.ts';

/** How long an owner counts as slow after one of its policies timed out or held all workers. Milliseconds. */
const SLOW_LANE_MS = 60_000;
/**
 * Owners that count as slow at once, because workers get their names with each review. Another one makes room by the one that
 * was slow first.
 */
export const MAX_SLOW_OWNERS = 100;

/** Owners of policies that occupied workers for long, see policyOwner. */
export class SlowOwners {
  /** When each stops being slow, the earliest additions first. */
  readonly #until = new KeptEntries<string, number>({ maxEntries: MAX_SLOW_OWNERS });

  /** Marks an owner as slow from now on, for this long at least. */
  add(owner: string, forMs = SLOW_LANE_MS): void {
    const until = Math.max(performance.now() + forMs, this.#until.get(owner) ?? 0);
    this.#until.set(owner, until);
  }

  delete(owner: string): void {
    this.#until.delete(owner);
  }

  /** Upper bound of their number. */
  get size(): number {
    return this.#until.size;
  }

  has(owner: string): boolean {
    const until = this.#until.get(owner);
    if (until !== undefined && until < performance.now()) {
      this.#until.delete(owner);
      return false;
    }
    return until !== undefined;
  }

  /** The slow owners that pass a test; null: none. */
  those(holds: (owner: string) => boolean): string[] | null {
    if (this.#until.size === 0) {
      return null;
    }
    const found = [...this.#until.keys()].filter((owner) => this.has(owner) && holds(owner));
    return found.length === 0 ? null : found;
  }
}
