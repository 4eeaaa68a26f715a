/** Malformed protobuf. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

/** An encoded field. */
export interface WireField {
  readonly number: number;
  /** The bits of a varint or fixed-size number; the bytes of other values. */
  readonly value: bigint | Buffer;
  /** Width of a fixed-size number in bits. */
  readonly fixed: 32 | 64 | undefined;
}

const MAX_VARINT_BYTES = 10;

/** Reads the fields of a protobuf message (protobuf.dev, "Encoding"). */
export class WireReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** @throws WireError */
  *fields(): Generator<WireField> {
    while (this.#at < this.#bytes.length) {
      const tag = this.varint();
      const number = Number(tag >> 3n);
      switch (Number(tag & 7n)) {
        case 0:
          yield { number, value: this.varint(), fixed: undefined };
          break;
        case 1:
          yield { number, value: this.#take(8).readBigUInt64LE(), fixed: 64 };
          break;
        case 2:
          yield { number, value: this.#take(this.#length()), fixed: undefined };
          break;
        case 5:
          yield { number, value: BigInt(this.#take(4).readUInt32LE()), fixed: 32 };
          break;
        default:
          throw new WireError(`proto: wrong wireType = ${tag & 7n}`);
      }
    }
  }

  /** @throws WireError */
  varint(): bigint {
    let value = 0n;
    for (let index = 0; index < MAX_VARINT_BYTES; index++) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined) {
        throw new WireError('unexpected EOF');
      }
      this.#at++;
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) {
        return BigInt.asUintN(64, value);
      }
    }
    throw new WireError('proto: integer overflow');
  }

  #length(): number {
    const length = this.varint();
    if (length > BigInt(this.#bytes.length - this.#at)) {
      throw new WireError('unexpected EOF');
    }
    return Number(length);
  }

  #take(length: number): Buffer {
    if (length > this.#bytes.length - this.#at) {
      throw new WireError('unexpected EOF');
    }
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}
