const SURROGATE = /[\ud800-\udfff]/;

/** A string addressed by code points, as CEL counts them; the common case without surrogates needs no copy. */
export class CodePoints {
  readonly #text: string;
  /** Offsets of the code points, and of the end; undefined where they are the indexes. */
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

  /** The offset of a code point in UTF-16 units. */
  offsetOf(index: number): number {
    return this.#offsets === undefined ? index : (this.#offsets[index] ?? this.#text.length);
  }

  /** The code point at an offset in UTF-16 units. */
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
