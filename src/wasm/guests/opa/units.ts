import { stringOperand, undefinedBecause } from './builtin.ts';
import type { OpaBuiltin } from './builtin.ts';
import { decimalOf, RegoNumber } from './number.ts';

const POWERS = ['k', 'm', 'g', 't', 'p', 'e'];

/** Exponents of more than six digits are rejected, as in OPA. */
const LONG_EXPONENT = /[eE][+-]?\d{7}/;

/** Maximum length of a text; Kubernetes quantities have some 20 characters. */
const MAX_CHARS = 10_000;

/** Maximum power of ten, far above Kubernetes quantities. OPA accepts up to 10^999999, at more than linear cost. */
const MAX_POWER = 5000;

interface Amount {
  readonly number: string;
  readonly unit: string;
}

/** Splits `1.5e3Ki` into number and unit. An `e` without digits after it is a unit. */
function split(text: string): Amount {
  if (text.includes(' ') || text.length > MAX_CHARS) {
    undefinedBecause(`units: an amount must not contain spaces or exceed ${MAX_CHARS} characters`);
  }
  const number = /^(?:[\d.+-]|[eE][+-]?\d+|[eE][+-](?!\d))*/.exec(text)?.[0] ?? '';
  if (LONG_EXPONENT.test(number)) {
    undefinedBecause('units: exponent too large');
  }
  return { number, unit: text.slice(number.length) };
}

/** A number as numerator / 10^scale. */
function rational(text: string): { readonly numerator: bigint; readonly scale: number } {
  if (!/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) {
    undefinedBecause('units: no amount');
  }
  const { negative, digits, point } = decimalOf(text);
  const shift = point - digits.length;
  if (Math.abs(shift) > MAX_POWER || digits.length > MAX_POWER) {
    undefinedBecause('units: amount out of range');
  }
  const numerator = BigInt(digits.padEnd(digits.length + Math.max(shift, 0), '0') || '0');
  return { numerator: negative ? -numerator : numerator, scale: Math.max(-shift, 0) };
}

function multiplier(base: bigint, letter: string): bigint | undefined {
  const power = POWERS.indexOf(letter);
  return power === -1 ? undefined : base ** BigInt(power + 1);
}

const parseBytes: OpaBuiltin = (operands) => {
  const { number, unit } = split(stringOperand(operands, 0).toLowerCase().replaceAll('"', ''));
  const [, letter = '', isBinary] = /^([a-z])(i?)b?$/.exec(unit) ?? [];
  const factor = unit === '' ? 1n : multiplier(isBinary === 'i' ? 1024n : 1000n, letter);
  if (factor === undefined) {
    undefinedBecause('units.parse_bytes: unknown unit');
  }
  const { numerator, scale } = rational(number);
  const amount = roundToMantissa(numerator, 10n ** BigInt(scale));
  const bytes = roundToMantissa(amount.numerator * factor, amount.denominator);
  return RegoNumber.of(bytes.numerator / bytes.denominator);
};

/** OPA computes bytes in floats with a mantissa of this size. */
const MANTISSA_BITS = 64;

/** Rounds a fraction to the mantissa of a float, halves to even; the result's denominator is a power of two. */
function roundToMantissa(
  numerator: bigint,
  denominator: bigint,
): { readonly numerator: bigint; readonly denominator: bigint } {
  if (numerator === 0n) {
    return { numerator, denominator: 1n };
  }
  const isNegative = numerator < 0n;
  const magnitude = isNegative ? -numerator : numerator;
  let shift = MANTISSA_BITS - (bitLength(magnitude) - bitLength(denominator));
  // The quotient has one bit more or less than the difference of the lengths.
  if (quotient(magnitude, denominator, shift) >= 1n << BigInt(MANTISSA_BITS)) {
    shift -= 1;
  }
  let mantissa = quotient(magnitude, denominator, shift);
  const [top, bottom] = scaled(magnitude, denominator, shift);
  const twiceRest = 2n * (top - mantissa * bottom);
  if (twiceRest > bottom || (twiceRest === bottom && (mantissa & 1n) === 1n)) {
    mantissa += 1n;
  }
  const signed = isNegative ? -mantissa : mantissa;
  return shift >= 0
    ? { numerator: signed, denominator: 1n << BigInt(shift) }
    : { numerator: signed << BigInt(-shift), denominator: 1n };
}

function scaled(numerator: bigint, denominator: bigint, shift: number): readonly [bigint, bigint] {
  return shift >= 0 ? [numerator << BigInt(shift), denominator] : [numerator, denominator << BigInt(-shift)];
}

function quotient(numerator: bigint, denominator: bigint, shift: number): bigint {
  const [top, bottom] = scaled(numerator, denominator, shift);
  return top / bottom;
}

function bitLength(value: bigint): number {
  return value.toString(2).length;
}

/** Maximum digits after the point in OPA's results. */
const FRACTION_DIGITS = 10;

const parse: OpaBuiltin = (operands) => {
  const { number, unit } = split(stringOperand(operands, 0).replaceAll('"', ''));
  const { numerator, scale } = rational(number);
  if (unit === 'm') {
    // OPA's milli is the double nearest to 0.001; the difference is beyond the printed digits.
    return decimal(numerator, scale + 3, true);
  }
  const [, letter = '', isBinary] = /^([kKmMgGtTpPeE])([iI]?)$/.exec(unit) ?? [];
  const factor = unit === '' ? 1n : multiplier(isBinary === '' ? 1000n : 1024n, letter.toLowerCase());
  if (factor === undefined) {
    undefinedBecause('units.parse: unknown unit');
  }
  return decimal(numerator * factor, scale, false);
};

function decimal(numerator: bigint, scale: number, isMilli: boolean): RegoNumber {
  const denominator = 10n ** BigInt(scale);
  if (numerator % denominator === 0n && !(isMilli && numerator !== 0n)) {
    return RegoNumber.of(numerator / denominator);
  }
  const magnitude = numerator < 0n ? -numerator : numerator;
  const scaled = (2n * magnitude * 10n ** BigInt(FRACTION_DIGITS) + denominator) / (2n * denominator);
  const digits = scaled.toString().padStart(FRACTION_DIGITS + 1, '0');
  const sign = numerator < 0n ? '-' : '';
  return new RegoNumber(`${sign}${digits.slice(0, -FRACTION_DIGITS)}.${digits.slice(-FRACTION_DIGITS)}`);
}

export const unitBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['units.parse', parse],
  ['units.parse_bytes', parseBytes],
];
