import { LibraryValue } from '../model/library-value.ts';
import { type CelValue, EvaluationFailure } from '../model/value.ts';

/** The notation of a quantity, kept when it is printed. */
type QuantityFormat = 'decimal-suffix' | 'binary-suffix' | 'exponent';

/**
 * Maximum number of digits of a quantity, written out. Kubernetes has no limit and spends unbounded time on
 * `1e2147483648`; the largest suffix is 10^18, and realistic typing errors are far below.
 */
export const MAX_QUANTITY_DIGITS = 1_000;

const MIN_INT = -(2n ** 63n);
const MAX_INT = 2n ** 63n - 1n;
/** Quantities are rounded up to this power of ten. */
const SMALLEST_EXPONENT = -9;
/** Numbers with at most this many digits fit an int. */
const SAFE_DIGITS = 18;
/** Binary quantities between minus and plus this value are printed as decimal ones. */
const BINARY_STEP = 1024n;

const DECIMAL_EXPONENTS: ReadonlyMap<string, number> = new Map([
  ['n', -9],
  ['u', -6],
  ['m', -3],
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['P', 15],
  ['E', 18],
]);

const BINARY_EXPONENTS: ReadonlyMap<string, number> = new Map([
  ['Ki', 10],
  ['Mi', 20],
  ['Gi', 30],
  ['Ti', 40],
  ['Pi', 50],
  ['Ei', 60],
]);

const MALFORMED = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const BAD_NUMBER = 'unable to parse numeric part of quantity';
const BAD_SUFFIX = "unable to parse quantity's suffix";
const TOO_LONG = `quantity has too many digits: expected at most ${MAX_QUANTITY_DIGITS} when written out`;

/** A number of the form unscaled × 10^exponent. */
interface Amount {
  readonly unscaled: bigint;
  readonly exponent: number;
  /**
   * Whether the API server stores it as a big decimal instead of an int with an exponent. Such a value is not an
   * integer for the API server.
   */
  readonly isBig: boolean;
}

/** An amount with a unit as in Kubernetes resources: a value of type `kubernetes.Quantity`. */
export class Quantity extends LibraryValue {
  readonly typeName = 'kubernetes.Quantity';
  readonly #amount: Amount;
  readonly #format: QuantityFormat;
  /** The source text, if it is canonical. */
  readonly #text: string | undefined;
  /** Whether it is the result of a sum: API servers return an error for it on the right of `==`. */
  readonly #isSum: boolean;

  constructor(amount: Amount, format: QuantityFormat, text?: string, isSum = false) {
    super();
    this.#amount = amount;
    this.#format = format;
    this.#text = text;
    this.#isSum = isSum;
  }

  protected override isComparableTo(other: CelValue): boolean {
    return other instanceof Quantity && !other.#isSum;
  }

  equals(other: CelValue): boolean {
    return other instanceof Quantity && this.compareTo(other) === 0;
  }

  compareTo(other: Quantity): -1 | 0 | 1 {
    return compareAmounts(this.#amount, other.#amount);
  }

  get sign(): -1 | 0 | 1 {
    return signOf(this.#amount.unscaled);
  }

  /** The value if it is an int in the API server; undefined otherwise. */
  get integer(): bigint | undefined {
    const { unscaled, exponent, isBig } = this.#amount;
    if (isBig || exponent < 0) {
      return undefined;
    }
    if (unscaled === 0n) {
      return 0n;
    }
    const value = exponent > SAFE_DIGITS ? undefined : unscaled * power(10n, exponent);
    return value === undefined || !isInt64(value) ? undefined : value;
  }

  /** The nearest double, or one close to it. */
  get approximation(): number {
    const { unscaled, exponent } = this.#amount;
    return exponent === 0 ? Number(unscaled) : Number(unscaled) * powerOfTen(exponent);
  }

  add(other: Quantity): Quantity | EvaluationFailure {
    return this.#combine(other, other.#amount.unscaled);
  }

  subtract(other: Quantity): Quantity | EvaluationFailure {
    const { unscaled } = other.#amount;
    // For two ints, the API server negates within 64 bits, which does not change the smallest int.
    return this.#combine(other, -unscaled, BigInt.asIntN(64, -unscaled));
  }

  #combine(other: Quantity, unscaled: bigint, small = unscaled): Quantity | EvaluationFailure {
    const { exponent, isBig } = other.#amount;
    const areInts = !isBig && !this.#amount.isBig;
    const sum =
      (areInts ? addSmall(this.#amount, { unscaled: small, exponent, isBig }) : undefined) ??
      addBig(this.#amount, { unscaled, exponent, isBig });
    if (sum === undefined) {
      return new EvaluationFailure(TOO_LONG);
    }
    const format = this.#amount.unscaled === 0n ? other.#format : this.#format;
    return new Quantity(sum, format, undefined, true);
  }

  /**
   * The canonical text: all digits, an exponent that is a multiple of three (or a power of 1024), and the smallest
   * possible number.
   */
  override toString(): string {
    if (this.#text !== undefined) {
      return this.#text;
    }
    if (this.#amount.unscaled === 0n) {
      return '0';
    }
    return this.#isWrittenBinary() ? this.#binaryText() : this.#decimalText();
  }

  #isWrittenBinary(): boolean {
    if (this.#format !== 'binary-suffix') {
      return false;
    }
    const { unscaled, exponent } = this.#amount;
    const { quotient, isExact } = roundUp(unscaled, -exponent);
    return isExact && (quotient <= -BINARY_STEP || quotient >= BINARY_STEP);
  }

  #binaryText(): string {
    const { quotient } = roundUp(this.#amount.unscaled, -this.#amount.exponent);
    const [number, times] = removeFactors(quotient, BINARY_STEP);
    return `${number}${suffixOf(BINARY_EXPONENTS, times * 10)}`;
  }

  #decimalText(): string {
    const [number, times] = removeFactors(this.#amount.unscaled, 10n);
    const exponent = this.#amount.exponent + times;
    const excess = ((exponent % 3) + 3) % 3;
    const suffix =
      this.#format === 'exponent' ? exponentSuffix(exponent - excess) : suffixOf(DECIMAL_EXPONENTS, exponent - excess);
    return `${number * power(10n, excess)}${suffix}`;
  }

  /** The quantity of an int, for sums. */
  static of(value: number | bigint): Quantity {
    return new Quantity({ unscaled: BigInt(value), exponent: 0, isBig: false }, 'exponent');
  }
}

/** The value of `quantity(text)`. */
export function parseQuantity(text: string): Quantity | EvaluationFailure {
  const parts = split(text);
  if (parts === undefined) {
    return new EvaluationFailure(MALFORMED);
  }
  const unit = interpretSuffix(parts.suffix);
  if (unit === undefined) {
    return new EvaluationFailure(BAD_SUFFIX);
  }
  if (parts.whole.length + parts.fraction.length > MAX_QUANTITY_DIGITS) {
    return new EvaluationFailure(TOO_LONG);
  }
  if (text === '0') {
    return new Quantity({ unscaled: 0n, exponent: 0, isBig: false }, 'decimal-suffix', text);
  }
  return parseSmall(text, parts, unit) ?? parseBig(parts, unit);
}

interface Parts {
  readonly isNegative: boolean;
  /** Digits before and after the point, without leading zeros. */
  readonly whole: string;
  readonly fraction: string;
  readonly suffix: string;
  /** Whether there are digits after the leading zeros. */
  readonly hasNumber: boolean;
}

interface Unit {
  readonly exponent: number;
  readonly format: QuantityFormat;
}

function split(text: string): Parts | undefined {
  // No two of its repetitions match the same characters: a text that ends otherwise would be tried at each split of its digits.
  const match = /^([+-]?)(0*)((?:[1-9]\d*)?)(\.\d*)?((?:[eEinumkKMGTP]+[-+]?\d*|[-+]\d*)?)$/.exec(text);
  if (match === null || text === '') {
    return undefined;
  }
  const [, sign = '', , digits = '', point = '', suffix = ''] = match;
  return {
    isNegative: sign === '-',
    whole: digits === '' ? '0' : digits,
    fraction: point.slice(1),
    suffix,
    hasNumber: point !== '' || digits !== '' || suffix !== '',
  };
}

function interpretSuffix(suffix: string): Unit | undefined {
  const decimal = DECIMAL_EXPONENTS.get(suffix);
  if (decimal !== undefined) {
    return { exponent: decimal, format: 'decimal-suffix' };
  }
  const binary = BINARY_EXPONENTS.get(suffix);
  if (binary !== undefined) {
    return { exponent: binary, format: 'binary-suffix' };
  }
  if (!/^[eE][-+]?\d{1,19}$/.test(suffix) || !isInt64(BigInt(suffix.slice(1).replace('+', '')))) {
    return undefined;
  }
  // The API server keeps only 32 bits.
  return { exponent: Number(BigInt.asIntN(32, BigInt(suffix.slice(1).replace('+', '')))), format: 'exponent' };
}

/** Parses a quantity that fits an int with an exponent; undefined if it does not. */
function parseSmall(text: string, parts: Parts, unit: Unit): Quantity | undefined {
  const isBinary = unit.format === 'binary-suffix';
  const digits = parts.whole.length + parts.fraction.length;
  const room = isBinary ? 14 - parts.whole.length - Math.trunc((unit.exponent * 3) / 10) : SAFE_DIGITS - digits;
  const exponent = isBinary ? 0 : unit.exponent - parts.fraction.length;
  if (room < 0 || (isBinary && parts.fraction !== '') || exponent < SMALLEST_EXPONENT) {
    return undefined;
  }
  const shifted = parts.whole + parts.fraction;
  const value = BigInt(shifted);
  const scaled = isBinary ? value << BigInt(unit.exponent) : value;
  if (!isInt64(scaled)) {
    return undefined;
  }
  const isCanonical = isBinary
    ? (value & 7n) !== 0n
    : exponent % 3 === 0 && !shifted.endsWith('000') && !shifted.startsWith('0');
  const amount = { unscaled: parts.isNegative ? -scaled : scaled, exponent, isBig: false };
  return new Quantity(amount, unit.format, isCanonical ? text : undefined);
}

/** Parses a big decimal, rounded up to 10^-9. */
function parseBig(parts: Parts, unit: Unit): Quantity | EvaluationFailure {
  if (parts.whole === '0' && parts.fraction === '' && !parts.hasNumber) {
    return new EvaluationFailure(BAD_NUMBER);
  }
  const isBinary = unit.format === 'binary-suffix';
  const digits = BigInt(parts.whole + parts.fraction) << BigInt(isBinary ? unit.exponent : 0);
  const exponent = (isBinary ? 0 : unit.exponent) - parts.fraction.length;
  if (exponent > MAX_QUANTITY_DIGITS) {
    return new EvaluationFailure(TOO_LONG);
  }
  let unscaled = digits === 0n ? 0n : roundUp(digits, SMALLEST_EXPONENT - exponent).quotient;
  let scale = digits === 0n ? exponent : SMALLEST_EXPONENT;
  let { format } = unit;
  if (isBinary && digits !== 0n) {
    const one = power(10n, -SMALLEST_EXPONENT);
    if (unscaled > MAX_INT * one) {
      unscaled = MAX_INT;
      scale = 0;
    } else if (unscaled < one) {
      format = 'decimal-suffix';
    }
  }
  return new Quantity({ unscaled: parts.isNegative ? -unscaled : unscaled, exponent: scale, isBig: true }, format);
}

/** Divides by 10^tens and rounds away from zero. A negative power multiplies. */
function roundUp(unscaled: bigint, tens: number): { quotient: bigint; isExact: boolean } {
  if (tens <= 0) {
    return { quotient: unscaled * power(10n, -tens), isExact: true };
  }
  if (tens > digitCount(unscaled)) {
    return { quotient: BigInt(signOf(unscaled)), isExact: unscaled === 0n };
  }
  const divisor = power(10n, tens);
  const quotient = unscaled / divisor;
  const isExact = quotient * divisor === unscaled;
  return { quotient: isExact ? quotient : quotient + BigInt(signOf(unscaled)), isExact };
}

/** The sum as a big decimal; undefined if it has too many digits. */
function addBig(left: Amount, right: Amount): Amount | undefined {
  const exponent = Math.min(left.exponent, right.exponent);
  if (Math.max(left.exponent, right.exponent) - exponent > MAX_QUANTITY_DIGITS) {
    return undefined;
  }
  const unscaled =
    left.unscaled * power(10n, left.exponent - exponent) + right.unscaled * power(10n, right.exponent - exponent);
  return digitCount(unscaled) > 2 * MAX_QUANTITY_DIGITS ? undefined : { unscaled, exponent, isBig: true };
}

/** The sum of ints with exponents; undefined if it does not fit one. */
function addSmall(left: Amount, right: Amount): Amount | undefined {
  if (right.unscaled === 0n || left.unscaled === 0n) {
    return right.unscaled === 0n ? left : right;
  }
  const exponent = Math.min(left.exponent, right.exponent);
  if (Math.max(left.exponent, right.exponent) - exponent > SAFE_DIGITS) {
    return undefined;
  }
  const leftUnscaled = left.unscaled * power(10n, left.exponent - exponent);
  const rightUnscaled = right.unscaled * power(10n, right.exponent - exponent);
  return isInt64(leftUnscaled) && isInt64(rightUnscaled) && isInt64(leftUnscaled + rightUnscaled)
    ? { unscaled: leftUnscaled + rightUnscaled, exponent, isBig: false }
    : undefined;
}

function compareAmounts(left: Amount, right: Amount): -1 | 0 | 1 {
  const sign = signOf(left.unscaled);
  if (sign !== signOf(right.unscaled) || sign === 0) {
    return signOf(BigInt(sign - signOf(right.unscaled)));
  }
  // Numbers of different magnitude need not be converted to the same exponent.
  const magnitude = digitCount(left.unscaled) + left.exponent - digitCount(right.unscaled) - right.exponent;
  if (magnitude !== 0) {
    return signOf(BigInt(magnitude) * BigInt(sign));
  }
  const exponent = Math.min(left.exponent, right.exponent);
  const leftUnscaled = left.unscaled * power(10n, left.exponent - exponent);
  return signOf(leftUnscaled - right.unscaled * power(10n, right.exponent - exponent));
}

/** Divides by a factor as often as possible and returns the count. The smallest int is unchanged, as in API servers. */
function removeFactors(value: bigint, factor: bigint): [result: bigint, times: number] {
  let result = value;
  let times = 0;
  while (result !== 0n && result !== MIN_INT && result % factor === 0n) {
    result /= factor;
    times++;
  }
  return [result, times];
}

function suffixOf(exponents: ReadonlyMap<string, number>, exponent: number): string {
  for (const [suffix, value] of exponents) {
    if (value === exponent) {
      return suffix;
    }
  }
  return '';
}

function exponentSuffix(exponent: number): string {
  return exponent === 0 ? '' : `e${exponent}`;
}

/** 10^exponent as Go's library computes it: the product of two table entries. */
function powerOfTen(exponent: number): number {
  if (exponent < -323 || exponent > 308) {
    return exponent < 0 ? 0 : Infinity;
  }
  const magnitude = Math.abs(exponent);
  const low = Number(`1e${magnitude % 32}`);
  const high = Math.trunc(magnitude / 32) * 32;
  return exponent < 0 ? Number(`1e-${high}`) / low : Number(`1e${high}`) * low;
}

function power(base: bigint, exponent: number): bigint {
  return base ** BigInt(exponent);
}

function digitCount(value: bigint): number {
  return String(value < 0n ? -value : value).length;
}

function signOf(value: bigint): -1 | 0 | 1 {
  if (value === 0n) {
    return 0;
  }
  return value < 0n ? -1 : 1;
}

function isInt64(value: bigint): boolean {
  return value >= MIN_INT && value <= MAX_INT;
}
