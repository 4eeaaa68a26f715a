import { formatFloat } from '../../go/index.ts';
import { CelUint, EvaluationFailure } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { MAX_INT, MAX_UINT, MIN_INT, doubleOf, doubleValue, isInt, toInt } from './number.ts';
import {
  CelDuration,
  CelTimestamp,
  MAX_SECONDS,
  MIN_SECONDS,
  formatDuration,
  formatTimestamp,
  parseDuration,
  parseTimestamp,
} from './time.ts';
import { typeNameOf } from './type-name.ts';

const INT_OVERFLOW = 'integer overflow';
const UINT_OVERFLOW = 'unsigned integer overflow';

/** 2^63 and 2^64: doubles from these bounds do not fit int and uint. */
const INT_LIMIT = 2 ** 63;
const UINT_LIMIT = 2 ** 64;

const DECIMAL_INT = /^[+-]?\d+$/;
const DECIMAL_UINT = /^\d+$/;
const DECIMAL_DOUBLE = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const HEX_DOUBLE = /^([+-]?)0x([\da-f]*)(?:\.([\da-f]*))?p([+-]?\d+)$/i;
/** Digit separators, as in `1_000`. */
const SEPARATOR = /(?<=[\dA-Fa-fxX])_(?=[\dA-Fa-f])/g;
const SPECIAL_DOUBLE = /^([+-]?)(inf|infinity|nan)$/i;

const TRUE_TEXTS: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const FALSE_TEXTS: ReadonlySet<string> = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

function conversionFailure(value: CelValue, type: string): EvaluationFailure {
  return new EvaluationFailure(`type conversion error from '${typeNameOf(value)}' to '${type}'`);
}

/** `string(value)`. */
export function toText(value: CelValue): string | EvaluationFailure {
  if (typeof value === 'string') {
    return value;
  }
  if (typeof value === 'boolean' || isInt(value)) {
    return String(value);
  }
  const double = doubleValue(value);
  if (double !== undefined) {
    return formatFloat(double, 'g');
  }
  if (value instanceof CelUint) {
    return value.value.toString();
  }
  if (value instanceof Uint8Array) {
    return decodeUtf8(value) ?? new EvaluationFailure('invalid UTF-8 in bytes, cannot convert to string');
  }
  if (value instanceof CelTimestamp) {
    return formatTimestamp(value);
  }
  return value instanceof CelDuration ? formatDuration(value) : conversionFailure(value, 'string');
}

/** Decodes bytes; undefined if they are not UTF-8. */
function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** `int(value)`. */
export function toIntValue(value: CelValue): CelResult {
  const double = doubleValue(value);
  if (double !== undefined) {
    return double > -INT_LIMIT && double < INT_LIMIT
      ? toInt(BigInt(Math.trunc(double)))
      : new EvaluationFailure(INT_OVERFLOW);
  }
  if (value instanceof CelUint) {
    return value.value > MAX_INT ? new EvaluationFailure(INT_OVERFLOW) : toInt(value.value);
  }
  if (typeof value === 'string') {
    const parsed = parseDigits(value, DECIMAL_INT);
    return parsed === undefined || parsed > MAX_INT || parsed < MIN_INT
      ? conversionFailure(value, 'int')
      : toInt(parsed);
  }
  if (value instanceof CelTimestamp) {
    return value.seconds;
  }
  if (value instanceof CelDuration) {
    return toInt(value.nanoseconds);
  }
  return isInt(value) ? value : conversionFailure(value, 'int');
}

/** The integer value of a text; undefined if it is invalid or exceeds 64 bits. */
function parseDigits(text: string, form: RegExp): bigint | undefined {
  if (!form.test(text)) {
    return undefined;
  }
  const digits = text.replace(/^[+-]?0*/, '');
  // 2^64 has 20 digits. Without this limit, the conversion would take quadratic time.
  if (digits.length > 20) {
    return undefined;
  }
  const magnitude = BigInt(digits === '' ? 0 : digits);
  return text.startsWith('-') ? -magnitude : magnitude;
}

/** `uint(value)`. */
export function toUintValue(value: CelValue): CelResult {
  const double = doubleValue(value);
  if (double !== undefined) {
    return double >= 0 && double < UINT_LIMIT
      ? new CelUint(BigInt(Math.trunc(double)))
      : new EvaluationFailure(UINT_OVERFLOW);
  }
  if (isInt(value)) {
    return value < 0 ? new EvaluationFailure(UINT_OVERFLOW) : new CelUint(BigInt(value));
  }
  if (typeof value === 'string') {
    const parsed = parseDigits(value, DECIMAL_UINT);
    return parsed === undefined || parsed > MAX_UINT ? conversionFailure(value, 'uint') : new CelUint(parsed);
  }
  return value instanceof CelUint ? value : conversionFailure(value, 'uint');
}

/** `double(value)`. */
export function toDoubleValue(value: CelValue): CelResult {
  if (isInt(value)) {
    return doubleOf(Number(value));
  }
  if (value instanceof CelUint) {
    return doubleOf(Number(value.value));
  }
  if (typeof value === 'string') {
    const parsed = parseDouble(value);
    return parsed === undefined ? conversionFailure(value, 'double') : doubleOf(parsed);
  }
  return doubleValue(value) === undefined ? conversionFailure(value, 'double') : value;
}

function parseDouble(written: string): number | undefined {
  const text = written.includes('_') ? written.replace(SEPARATOR, '') : written;
  if (DECIMAL_DOUBLE.test(text)) {
    const parsed = Number(text);
    return Number.isFinite(parsed) ? parsed : undefined;
  }
  const special = SPECIAL_DOUBLE.exec(text);
  if (special === null) {
    return parseHexDouble(text);
  }
  if (special[2]?.toLowerCase() === 'nan') {
    return Number.NaN;
  }
  return special[1] === '-' ? -Infinity : Infinity;
}

/** Digits of a hexadecimal mantissa, beyond which only the exponent matters. */
const MAX_HEX_DIGITS = 32;

function parseHexDouble(text: string): number | undefined {
  const [, sign, whole = '', fraction = '', exponent] = HEX_DOUBLE.exec(text) ?? [];
  if (exponent === undefined || whole + fraction === '' || whole.length > MAX_HEX_DIGITS) {
    return undefined;
  }
  const digits = fraction.slice(0, MAX_HEX_DIGITS);
  const value = Number(`0x${whole}${digits}`) * 2 ** (Number(exponent) - 4 * digits.length);
  return Number.isFinite(value) ? value * (sign === '-' ? -1 : 1) : undefined;
}

/** `bool(value)`. */
export function toBoolValue(value: CelValue): CelResult {
  if (typeof value === 'string') {
    return TRUE_TEXTS.has(value) || (FALSE_TEXTS.has(value) ? false : conversionFailure(value, 'bool'));
  }
  return typeof value === 'boolean' ? value : conversionFailure(value, 'bool');
}

/** `bytes(value)`. */
export function toBytesValue(value: CelValue): CelResult {
  if (typeof value === 'string') {
    return new TextEncoder().encode(value);
  }
  return value instanceof Uint8Array ? value : conversionFailure(value, 'bytes');
}

/** `timestamp(value)`; ints are seconds since 1970. */
export function toTimestampValue(value: CelValue): CelResult {
  if (typeof value === 'string') {
    return parseTimestamp(value) ?? conversionFailure(value, 'google.protobuf.Timestamp');
  }
  if (isInt(value)) {
    return value < MIN_SECONDS || value > MAX_SECONDS
      ? new EvaluationFailure('timestamp overflow')
      : new CelTimestamp(Number(value));
  }
  return value instanceof CelTimestamp ? value : conversionFailure(value, 'google.protobuf.Timestamp');
}

/** `duration(value)`. */
export function toDurationValue(value: CelValue): CelResult {
  if (typeof value === 'string') {
    return parseDuration(value) ?? conversionFailure(value, 'google.protobuf.Duration');
  }
  return value instanceof CelDuration ? value : conversionFailure(value, 'google.protobuf.Duration');
}
