import { CelDouble, CelUint } from '../model/value.ts';

const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;
const MAX_UINT = 2n ** 64n - 1n;
/** Integers with at most this many digits are exact as a JavaScript number. */
const SAFE_DIGITS = 15;
/** More digits than a 64-bit number has, in either base. */
const MAX_DIGITS = 20;

const LAST_CODE_POINT = 0x10_ffff;

/** An invalid string or bytes literal. */
export class InvalidLiteral {
  readonly message: string;
  /** Offset from the start of the token. */
  readonly offset: number;
  readonly hint: string | undefined;

  constructor(message: string, offset = 0, hint?: string) {
    this.message = message;
    this.offset = offset;
    this.hint = hint;
  }
}

/** The value of an int literal; undefined if it does not fit 64 bits. */
export function parseInt64(text: string, isNegative: boolean): number | bigint | undefined {
  if (text.length <= SAFE_DIGITS) {
    const value = Number(text);
    // Never -0, which is a double.
    return isNegative && value !== 0 ? -value : value;
  }
  const magnitude = bigIntOf(text);
  if (magnitude === undefined) {
    return undefined;
  }
  const value = isNegative ? -magnitude : magnitude;
  if (value < MIN_INT || value > MAX_INT) {
    return undefined;
  }
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** The value of a uint literal (with its `u`); undefined if it does not fit 64 bits. */
export function parseUint64(text: string): CelUint | undefined {
  const value = bigIntOf(text.slice(0, -1));
  return value === undefined || value > MAX_UINT ? undefined : new CelUint(value);
}

/** The value of a double literal; undefined if it is too large. */
export function parseDouble(text: string, isNegative: boolean): number | CelDouble | undefined {
  const magnitude = Number(text);
  if (!Number.isFinite(magnitude)) {
    return undefined;
  }
  const value = isNegative ? -magnitude : magnitude;
  return Number.isInteger(value) ? new CelDouble(value) : value;
}

function bigIntOf(text: string): bigint | undefined {
  const isHex = text.startsWith('0x');
  const digits = (isHex ? text.slice(2) : text).replace(/^0+/u, '');
  if (digits.length > MAX_DIGITS) {
    return undefined;
  }
  return BigInt(`${isHex ? '0x' : ''}${digits === '' ? '0' : digits}`);
}

interface Body {
  readonly text: string;
  readonly isRaw: boolean;
  /** Offset in the token. */
  readonly offset: number;
}

/** The value of a string literal, given its token with prefix and quotes. */
export function parseString(token: string): string | InvalidLiteral {
  const body = bodyOf(token);
  if (body.isRaw || !body.text.includes('\\')) {
    return body.text;
  }
  const parts: string[] = [];
  const problem = unescape(
    body,
    (text) => parts.push(text),
    (code, isByte) => {
      if (!isByte && !isScalarValue(code)) {
        return 'invalid unicode code point';
      }
      parts.push(String.fromCodePoint(code));
      return undefined;
    },
  );
  return problem ?? parts.join('');
}

/** The value of a bytes literal. Text outside of escapes is encoded as UTF-8. */
export function parseBytes(token: string): Uint8Array | InvalidLiteral {
  const body = bodyOf(token);
  const encoder = new TextEncoder();
  if (body.isRaw || !body.text.includes('\\')) {
    return encoder.encode(body.text);
  }
  const parts: Uint8Array[] = [];
  const problem = unescape(
    body,
    (text) => parts.push(encoder.encode(text)),
    (code, isByte) => {
      if (!isByte) {
        return 'unable to unescape string';
      }
      parts.push(Uint8Array.of(code));
      return undefined;
    },
  );
  return problem ?? concatenate(parts);
}

function concatenate(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    bytes.set(part, offset);
    offset += part.length;
  }
  return bytes;
}

function isScalarValue(code: number): boolean {
  return code <= LAST_CODE_POINT && (code < 0xd800 || code > 0xdfff);
}

function bodyOf(token: string): Body {
  const quoteAt = token.search(/["']/u);
  const quote = token.charAt(quoteAt);
  const prefix = token.slice(0, quoteAt).toLowerCase();
  const isTriple = token.startsWith(quote.repeat(3), quoteAt) && token.length >= quoteAt + 6;
  const quotes = isTriple ? 3 : 1;
  return {
    text: token.slice(quoteAt + quotes, -quotes).replaceAll(/\r\n?/gu, '\n'),
    isRaw: prefix.includes('r'),
    offset: quoteAt + quotes,
  };
}

const SIMPLE_ESCAPES: ReadonlyMap<string, number> = new Map([
  ['a', 7],
  ['b', 8],
  ['f', 12],
  ['n', 10],
  ['r', 13],
  ['t', 9],
  ['v', 11],
  ['\\', 92],
  ["'", 39],
  ['"', 34],
  ['`', 96],
  ['?', 63],
]);

const NUMERIC_ESCAPES: readonly { readonly pattern: RegExp; readonly base: number; readonly isByte: boolean }[] = [
  { pattern: /^[xX]([0-9a-fA-F]{2})/u, base: 16, isByte: true },
  { pattern: /^u([0-9a-fA-F]{4})/u, base: 16, isByte: false },
  { pattern: /^U([0-9a-fA-F]{8})/u, base: 16, isByte: false },
  { pattern: /^([0-3][0-7]{2})/u, base: 8, isByte: true },
];

/** Maximum length of an escape after its backslash. */
const LONGEST_ESCAPE = 9;

/**
 * Splits a literal into plain text and escapes. `onEscape` returns a message if the code is invalid in this kind of
 * literal.
 */
function unescape(
  body: Body,
  onText: (text: string) => void,
  onEscape: (code: number, isByte: boolean) => string | undefined,
): InvalidLiteral | undefined {
  const { text } = body;
  let index = 0;
  for (;;) {
    const backslash = text.indexOf('\\', index);
    onText(text.slice(index, backslash === -1 ? undefined : backslash));
    if (backslash === -1) {
      return undefined;
    }
    const escape = readEscape(text.slice(backslash + 1, backslash + 1 + LONGEST_ESCAPE));
    if (escape === undefined) {
      return new InvalidLiteral(
        `Syntax error: token recognition error at: '${text.slice(backslash, backslash + 2)}'`,
        body.offset + backslash,
        'there is no such escape sequence: write \\\\ for a backslash, or put r before the quotes',
      );
    }
    const problem = onEscape(escape.code, escape.isByte);
    if (problem !== undefined) {
      return new InvalidLiteral(problem);
    }
    index = backslash + 1 + escape.length;
  }
}

function readEscape(text: string): { code: number; length: number; isByte: boolean } | undefined {
  const simple = SIMPLE_ESCAPES.get(text.charAt(0));
  if (simple !== undefined) {
    return { code: simple, length: 1, isByte: true };
  }
  for (const { pattern, base, isByte } of NUMERIC_ESCAPES) {
    const match = pattern.exec(text);
    if (match !== null) {
      return { code: Number.parseInt(match[1] ?? '', base), length: match[0].length, isByte };
    }
  }
  return undefined;
}
