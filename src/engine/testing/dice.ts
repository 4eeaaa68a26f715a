/** Pseudo-random numbers from a seed. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(count: number): number {
    // xorshift32
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) % count;
  }

  one<T>(list: readonly T[]): T {
    return list[this.below(list.length)] as T;
  }

  some<T>(list: readonly T[]): T[] {
    return Array.from({ length: 1 + this.below(2) }, () => this.one(list));
  }
}
