const INITIAL_CAPACITY = 64;

/** A growing list of integers from 0 to 2^32 - 1 in four bytes each, which keeps its capacity when it is cleared. */
export class NumberList {
  #numbers = new Uint32Array(INITIAL_CAPACITY);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  clear(): void {
    this.#length = 0;
  }

  push(value: number): void {
    if (this.#length === this.#numbers.length) {
      const grown = new Uint32Array(this.#length * 2);
      grown.set(this.#numbers);
      this.#numbers = grown;
    }
    this.#numbers[this.#length++] = value;
  }

  /** The number at `index`; 0 beyond the end. */
  at(index: number): number {
    return index < this.#length ? (this.#numbers[index] ?? 0) : 0;
  }

  set(index: number, value: number): void {
    this.#numbers[index] = value;
  }
}
