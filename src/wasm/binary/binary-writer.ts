const INITIAL_BYTES = 1024;
const SIZE_BYTES = 5;

/** A growing byte buffer with the number encodings of the WebAssembly binary format. */
export class BinaryWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #length = 0;

  constructor(capacity = INITIAL_BYTES) {
    this.#bytes = new Uint8Array(Math.max(capacity, INITIAL_BYTES));
  }

  get length(): number {
    return this.#length;
  }

  /** A view of the written bytes; invalid after the next write. */
  get written(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): this {
    this.#length = 0;
    return this;
  }

  /** Raw bytes: opcodes and fixed fields. */
  op(...bytes: number[]): this {
    this.#reserve(bytes.length);
    for (const byte of bytes) {
      this.#bytes[this.#length++] = byte;
    }
    return this;
  }

  bytes(source: Uint8Array): this {
    this.#reserve(source.length);
    this.#bytes.set(source, this.#length);
    this.#length += source.length;
    return this;
  }

  /** The bytes of `source` from `from` up to, but not including, `to`. */
  range(source: Uint8Array, from: number, to: number): this {
    const length = to - from;
    this.#reserve(length);
    if (length < 64) {
      // For short ranges, a loop is faster than creating a view for `set`.
      for (let index = from; index < to; index++) {
        this.#bytes[this.#length++] = source[index] as number;
      }
    } else {
      this.#bytes.set(source.subarray(from, to), this.#length);
      this.#length += length;
    }
    return this;
  }

  /** Unsigned LEB128 of at most 32 bits. */
  u32(value: number): this {
    this.#reserve(5);
    let rest = value >>> 0;
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
    return this;
  }

  /** Signed LEB128 of a 32-bit integer; values from 2^31 are interpreted as two's complement. */
  s32(value: number): this {
    return this.s64(value | 0);
  }

  /** Signed LEB128 of a safe integer. */
  s64(value: number): this {
    this.#reserve(10);
    let rest = value;
    for (;;) {
      const low = ((rest % 128) + 128) % 128;
      rest = Math.floor(rest / 128);
      if ((rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0)) {
        this.#bytes[this.#length++] = low;
        return this;
      }
      this.#bytes[this.#length++] = low | 0x80;
    }
  }

  /** A length-prefixed UTF-8 name. */
  name(text: string): this {
    const bytes = new TextEncoder().encode(text);
    return this.u32(bytes.length).bytes(bytes);
  }

  /** Length-prefixed bytes, for example the content of a section or function. */
  sized(content: Uint8Array): this {
    return this.u32(content.length).bytes(content);
  }

  /** Leaves room for the size of what follows, and returns its place for {@link setSize}. */
  reserveSize(): number {
    this.op(0, 0, 0, 0, 0);
    return this.#length;
  }

  /** Writes the size of what has been written since {@link reserveSize}, as a LEB128 of five bytes. */
  setSize(from: number): void {
    let rest = this.#length - from;
    for (let index = from - SIZE_BYTES; index < from - 1; index++) {
      this.#bytes[index] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[from - 1] = rest;
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
      grown.set(this.written);
      this.#bytes = grown;
    }
  }
}
