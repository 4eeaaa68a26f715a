const SURROGATE = /[\ud800-\udfff]/;

/** A string indexed by code points, as in CEL. Strings without surrogates are not copied. */
export class CodePoints {
  readonly #text: string;
  /** Offsets of the code points and of the end; undefined if they equal the indexes. */
  readonly #offsets: readonly number[] | undefined;

  constructor(text: string) {
    this.#text = text;
    this.#offsets = SURROGATE.test(text) ? offsetsOf(text) : undefined;
  }

  get length(): number {
    return this.#offsets === undefined ? this.#text.length : this.#offsets.length - 1;
  }

  slice(start: number, end: number = this.length): string {
    return this.#text.slice(this.offsetOf(start), this.offsetOf(end));
  }

  /** The UTF-16 offset of a code point. */
  offsetOf(index: number): number {
    return this.#offsets === undefined ? index : (this.#offsets[index] ?? this.#text.length);
  }

  /** The index of the code point at a UTF-16 offset. */
  indexOf(offset: number): number {
    const offsets = this.#offsets;
    if (offsets === undefined) {
      return offset;
    }
    let low = 0;
    let high = offsets.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((offsets[middle] ?? 0) < offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
}

function offsetsOf(text: string): number[] {
  const offsets: number[] = [];
  let offset = 0;
  for (const character of text) {
    offsets.push(offset);
    offset += character.length;
  }
  offsets.push(offset);
  return offsets;
}
