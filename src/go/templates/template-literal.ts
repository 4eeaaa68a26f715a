import { invalidTemplate } from './errors.ts';
import { isInt64 } from '../int64.ts';
import { GoFloat } from '../value.ts';

/** The value of a literal; integers and characters are an `int`. */
export type Constant = string | boolean | bigint | GoFloat | null;

/** More digits than an int64 has in base 2, with the prefix. */
const MAX_DIGITS = 66;

/** The value of an integer, in any base; undefined for other numbers. */
export function integerLiteral(text: string): bigint | undefined {
  const [, sign, written] = /^([+-]?)(\d[\d_]*|0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+)$/.exec(text) ?? [];
  if (written === undefined) {
    return undefined;
  }
  const digits = written.replaceAll('_', '');
  const isOctal = /^0[0-7]+$/.test(digits);
  if (digits.length > MAX_DIGITS || (/^0\d/.test(digits) && !isOctal)) {
    return invalidTemplate(`bad number ${text.slice(0, MAX_DIGITS)}`);
  }
  const magnitude = BigInt(isOctal ? `0o${digits.slice(1)}` : digits);
  const value = sign === '-' ? -magnitude : magnitude;
  return isInt64(value) ? value : invalidTemplate(`integer overflow: ${text}`);
}

export function floatLiteral(text: string): GoFloat {
  return new GoFloat(Number(text.replaceAll('_', '')));
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['a', '\u0007'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ['\\', '\\'],
]);

const ESCAPE = /\\(?:([0-7]{3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/gu;

/** The value of a literal in double quotes, single quotes (a character) or backquotes. */
export function quotedLiteral(literal: string): string | bigint {
  const inner = literal.slice(1, -1);
  const quote = literal.charAt(0);
  if (quote === '`') {
    return inner;
  }
  const text = inner.replace(ESCAPE, (_, octal?: string, x?: string, u?: string, long?: string, other = '') => {
    const hex = x ?? u ?? long;
    if (octal === undefined && hex === undefined) {
      return ESCAPES.get(other) ?? (other === quote ? quote : invalidTemplate(`bad escape in ${literal}`));
    }
    const code = octal === undefined ? Number.parseInt(hex ?? '', 16) : Number.parseInt(octal, 8);
    return code <= 0x10ffff ? String.fromCodePoint(code) : invalidTemplate(`bad escape in ${literal}`);
  });
  if (quote === '"') {
    return text;
  }
  const [character, ...more] = text;
  return character !== undefined && more.length === 0
    ? BigInt(character.codePointAt(0) ?? 0)
    : invalidTemplate(`bad character ${literal}`);
}
