/** The lines of offsets, and the columns in them, for many of them. */
export class LineNumbers {
  /** Offsets of line feeds. */
  readonly #ends: readonly number[];

  constructor(text: string) {
    this.#ends = [...text.matchAll(/\n/g)].map(({ index }) => index);
  }

  /** Counted from 1. */
  at(offset: number): number {
    let [low, high] = [0, this.#ends.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ends[middle] ?? offset) < offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low + 1;
  }

  /** Counted from 1, columns in UTF-16 units. */
  columnAt(offset: number): number {
    return offset - (this.#ends[this.at(offset) - 2] ?? -1);
  }
}
