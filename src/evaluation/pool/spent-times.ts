import { KeptEntries } from '../../values/index.ts';

/** More is forgotten. Milliseconds. */
const MAX_KEPT_MS = 5_000;
/** Owners whose times are known at once: the one that was added to least recently makes room. */
export const MAX_SPENDERS = 1_000;

interface Spent {
  readonly ms: number;
  readonly at: number;
}

/** Time that owners spend, which wears off: a share of the time is free, and some time beyond it at once. */
export class SpentTimes {
  readonly #share: number;
  readonly #limitMs: number;
  /** The one that was added to least recently first. */
  readonly #owners = new KeptEntries<string, Spent>({ maxEntries: MAX_SPENDERS });

  /**
   * @param share of one worker, the time that an owner may spend without end
   * @param limitMs that it may spend at once
   */
  constructor(share: number, limitMs: number) {
    this.#share = share;
    this.#limitMs = limitMs;
  }

  get size(): number {
    return this.#owners.size;
  }

  add(owner: string, ms: number): void {
    const spent = Math.min(this.#of(owner) + ms, MAX_KEPT_MS);
    this.#owners.set(owner, { ms: spent, at: performance.now() });
  }

  /** How long the owner has spent more than it may, from now on; 0: it has not. Milliseconds. */
  excessMs(owner: string): number {
    return Math.max(0, this.#of(owner) - this.#limitMs) / this.#share;
  }

  #of(owner: string): number {
    const spent = this.#owners.get(owner);
    return spent === undefined ? 0 : Math.max(0, spent.ms - (performance.now() - spent.at) * this.#share);
  }
}
