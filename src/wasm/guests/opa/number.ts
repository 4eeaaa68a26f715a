import { isInt64 } from '../../../go/index.ts';

/**
 * A Rego number: a decimal of any size, stored as its JSON text, because a double would corrupt values that policies
 * use (nanosecond timestamps, byte quantities, 64-bit ids).
 */
export class RegoNumber {
  readonly text: string;

  /** @param text a number in JSON syntax */
  constructor(text: string) {
    this.text = text;
  }

  static of(value: number | bigint): RegoNumber {
    return new RegoNumber(String(value));
  }
}

/** `0.digits * 10^point`, without zeros at either end of `digits`; zero has no digits. */
interface Decimal {
  readonly negative: boolean;
  readonly digits: string;
  readonly point: number;
}

const NUMBER_PARTS = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d+))?$/;

/** Splits the text of a number. Takes linear time, because it computes no power of ten. */
export function decimalOf(text: string): Decimal {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = NUMBER_PARTS.exec(text) ?? [];
  const all = whole + fraction;
  let start = 0;
  while (start < all.length && all[start] === '0') {
    start += 1;
  }
  let end = all.length;
  while (end > start && all[end - 1] === '0') {
    end -= 1;
  }
  if (start === end) {
    return { negative: false, digits: '', point: 0 };
  }
  return { negative: sign === '-', digits: all.slice(start, end), point: whole.length - start + Number(exponent) };
}

/** The same text for equal numbers, whatever their notation (1, 1.0, 10e-1). */
export function canonicalNumber(text: string): string {
  const { negative, digits, point } = decimalOf(text);
  return `${negative ? '-' : ''}${digits}e${point}`;
}

export function compareNumbers(a: string, b: string): number {
  const x = decimalOf(a);
  const y = decimalOf(b);
  if (x.negative !== y.negative) {
    return x.negative ? -1 : 1;
  }
  const magnitude = compareMagnitudes(x, y);
  return x.negative ? -magnitude : magnitude;
}

function compareMagnitudes(x: Decimal, y: Decimal): number {
  if (x.digits === '' || y.digits === '') {
    return Math.sign(x.digits.length - y.digits.length) * (x.negative ? -1 : 1);
  }
  if (x.point !== y.point) {
    return x.point < y.point ? -1 : 1;
  }
  return x.digits === y.digits ? 0 : x.digits < y.digits ? -1 : 1;
}

const INT64_TEXT = /^[+-]?(\d+)(\.0*)?$/;
/** The largest int64 has 19 digits. As OPA, this rejects longer texts, including those with a fraction of zeros. */
const INT64_TEXT_LENGTH = 19;

/**
 * The value of a number that OPA accepts as int64: digits with an optional fraction of zeros. As in OPA, exponents
 * (1e3) are not accepted.
 */
export function int64Of(text: string): bigint | undefined {
  const match = INT64_TEXT.exec(text);
  if (match === null || text.replace(/^[+-]/, '').length > INT64_TEXT_LENGTH) {
    return undefined;
  }
  const value = BigInt(text.split('.')[0] ?? '');
  return isInt64(value) ? value : undefined;
}

/** Maximum digits of an integer: far above real values, because arithmetic takes more than linear time. */
const MAX_INTEGER_DIGITS = 10_000;

/** The exact value of an integer in any notation; undefined for fractions and too large numbers. */
export function integerOf(text: string): bigint | undefined {
  const { negative, digits, point } = decimalOf(text);
  if (point < digits.length || point > MAX_INTEGER_DIGITS) {
    return undefined;
  }
  const value = BigInt(digits.padEnd(point, '0') || '0');
  return negative ? -value : value;
}
