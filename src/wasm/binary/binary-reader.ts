import { WasmError } from './errors.ts';

/** A cursor over the bytes of a module. A read beyond the end throws WasmError `module-invalid`. */
export class BinaryReader {
  readonly bytes: Uint8Array;
  readonly end: number;
  pos: number;

  constructor(bytes: Uint8Array, pos = 0, end = bytes.length) {
    this.bytes = bytes;
    this.pos = pos;
    this.end = end;
  }

  get isAtEnd(): boolean {
    return this.pos >= this.end;
  }

  u8(): number {
    if (this.pos >= this.end) {
      throw truncated(this.pos);
    }
    return this.bytes[this.pos++] as number;
  }

  /** The next byte, which the next read returns again. */
  peek(): number {
    const byte = this.u8();
    this.pos--;
    return byte;
  }

  /** Unsigned LEB128 of at most 32 bits. */
  u32(): number {
    let result = 0;
    let shift = 0;
    for (let index = 0; index < 5; index++) {
      const byte = this.u8();
      // Not `<<`, which would make bit 31 a sign bit.
      result += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (result > 0xffff_ffff) {
          break;
        }
        return result;
      }
      shift += 7;
    }
    throw new WasmError('module-invalid', `malformed number at byte ${this.pos} of the module`);
  }

  /** Signed LEB128 of at most 32 bits. */
  s32(): number {
    let result = 0;
    let shift = 0;
    for (;;) {
      const byte = this.u8();
      result |= (byte & 0x7f) << shift;
      shift += 7;
      if (byte < 0x80) {
        return shift < 32 && (byte & 0x40) !== 0 ? result | (-1 << shift) : result;
      }
      if (shift >= 35) {
        throw new WasmError('module-invalid', `malformed number at byte ${this.pos} of the module`);
      }
    }
  }

  /** Signed LEB128 of at most 33 bits: the index of a type, or a negative number for a type that has none. */
  s33(): number {
    let result = 0;
    let scale = 1;
    for (let index = 0; index < 5; index++) {
      const byte = this.u8();
      // Not `<<`, which has 32 bits.
      result += (byte & 0x7f) * scale;
      scale *= 0x80;
      if (byte < 0x80) {
        return (byte & 0x40) === 0 ? result : result - scale;
      }
    }
    throw new WasmError('module-invalid', `malformed number at byte ${this.pos} of the module`);
  }

  /** Skips a LEB128 of any width. */
  skipLeb(): void {
    while (this.u8() >= 0x80) {
      // The last byte of a LEB128 has its high bit clear.
    }
  }

  skip(length: number): void {
    if (length > this.end - this.pos) {
      throw truncated(this.end);
    }
    this.pos += length;
  }

  /** A view of the next bytes. */
  slice(length: number): Uint8Array {
    const from = this.pos;
    this.skip(length);
    return this.bytes.subarray(from, from + length);
  }

  /** A length-prefixed UTF-8 name. */
  name(): string {
    return new TextDecoder().decode(this.slice(this.u32()));
  }
}

function truncated(at: number): WasmError {
  return new WasmError('module-invalid', `the module ends inside of an entry at byte ${at}`);
}
