import { CelObject, EvaluationFailure } from '../value.ts';
import type { CelResult, CelValue } from '../value.ts';
import { MAX_INT, MIN_INT } from './number.ts';

const NANOS_PER_SECOND = 1_000_000_000;
const NANOS_PER_SECOND_BIG = 1_000_000_000n;

/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, between which timestamps are, in seconds since 1970. */
export const MIN_SECONDS = -62_135_596_800;
export const MAX_SECONDS = 253_402_300_799;

/** A moment, to the nanosecond, and the offset from UTC that it was written with, which printing keeps. */
export class CelTimestamp extends CelObject {
  /** Seconds since 1970. */
  readonly seconds: number;
  /** 0 to 999,999,999. */
  readonly nanos: number;
  readonly offsetSeconds: number;

  constructor(seconds: number, nanos = 0, offsetSeconds = 0) {
    super();
    this.seconds = seconds;
    this.nanos = nanos;
    this.offsetSeconds = offsetSeconds;
  }

  get typeName(): string {
    return 'google.protobuf.Timestamp';
  }

  equals(other: CelValue): boolean {
    return other instanceof CelTimestamp && other.seconds === this.seconds && other.nanos === this.nanos;
  }
}

/** A time span of up to 292 years, to the nanosecond. */
export class CelDuration extends CelObject {
  readonly nanoseconds: bigint;

  constructor(nanoseconds: bigint) {
    super();
    this.nanoseconds = nanoseconds;
  }

  get typeName(): string {
    return 'google.protobuf.Duration';
  }

  equals(other: CelValue): boolean {
    return other instanceof CelDuration && other.nanoseconds === this.nanoseconds;
  }
}

/** A duration of so many nanoseconds, or a failure beyond 64 bits. */
export function durationOf(nanoseconds: bigint): CelDuration | EvaluationFailure {
  return nanoseconds < MIN_INT || nanoseconds > MAX_INT
    ? new EvaluationFailure('integer overflow')
    : new CelDuration(nanoseconds);
}

/** `timestamp + duration`. */
export function addDuration(timestamp: CelTimestamp, nanoseconds: bigint): CelResult {
  const total = BigInt(timestamp.seconds) * NANOS_PER_SECOND_BIG + BigInt(timestamp.nanos) + nanoseconds;
  const nanos = ((total % NANOS_PER_SECOND_BIG) + NANOS_PER_SECOND_BIG) % NANOS_PER_SECOND_BIG;
  const seconds = Number((total - nanos) / NANOS_PER_SECOND_BIG);
  return seconds < MIN_SECONDS || seconds > MAX_SECONDS
    ? new EvaluationFailure('timestamp overflow')
    : new CelTimestamp(seconds, Number(nanos), timestamp.offsetSeconds);
}

/** `timestamp - timestamp`. */
export function timeBetween(later: CelTimestamp, earlier: CelTimestamp): CelResult {
  const seconds = BigInt(later.seconds - earlier.seconds);
  return durationOf(seconds * NANOS_PER_SECOND_BIG + BigInt(later.nanos - earlier.nanos));
}

/** Nanoseconds per unit of durations as Go writes them. */
const UNITS: ReadonlyMap<string, number> = new Map([
  ['ns', 1],
  ['us', 1_000],
  // U+00B5, the micro sign, and U+03BC, the Greek letter.
  ['\u00b5s', 1_000],
  ['\u03bcs', 1_000],
  ['ms', 1_000_000],
  ['s', NANOS_PER_SECOND],
  ['m', 60 * NANOS_PER_SECOND],
  ['h', 3600 * NANOS_PER_SECOND],
]);

/** Beyond these, digits of a fraction are less than a nanosecond of any unit. */
const FRACTION_DIGITS = 18;
/** More digits than 64 bits have. */
const WHOLE_DIGITS = 19;

const DURATION_PART = /(\d*)(?:\.(\d*))?([^\d.]+)/y;

/** Reads a duration as Go writes it: `1h30m`, `-1.5s`; undefined when it is none or too long. */
export function parseDuration(text: string): CelDuration | undefined {
  const isNegative = text.startsWith('-');
  const rest = isNegative || text.startsWith('+') ? text.slice(1) : text;
  if (rest === '0') {
    return new CelDuration(0n);
  }
  const total = sumOfParts(rest);
  if (total === undefined || total > MAX_INT + (isNegative ? 1n : 0n)) {
    return undefined;
  }
  return new CelDuration(isNegative ? -total : total);
}

function sumOfParts(text: string): bigint | undefined {
  const pattern = new RegExp(DURATION_PART);
  let total = 0n;
  do {
    const match = pattern.exec(text);
    const unit = UNITS.get(match?.[3] ?? '');
    if (match === null || unit === undefined) {
      return undefined;
    }
    const whole = (match[1] ?? '').replace(/^0+/, '');
    const fraction = (match[2] ?? '').slice(0, FRACTION_DIGITS);
    if (((match[1] ?? '') === '' && fraction === '') || whole.length > WHOLE_DIGITS) {
      return undefined;
    }
    const rest = fraction === '' ? 0 : Math.trunc(Number(fraction) * (unit / 10 ** fraction.length));
    total += BigInt(whole === '' ? 0 : whole) * BigInt(unit) + BigInt(rest);
    if (total > MAX_INT + 1n) {
      return undefined;
    }
  } while (pattern.lastIndex < text.length);
  return total;
}

const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/;

/** Reads a timestamp as RFC 3339 has it; undefined when it is none, a failure outside the years 1 to 9999. */
export function parseTimestamp(text: string): CelTimestamp | EvaluationFailure | undefined {
  const match = RFC3339.exec(text);
  if (match === null) {
    return undefined;
  }
  const field = (index: number): number => Number(match[index] ?? 0);
  const [year, month, day, hour, minute, second] = [field(1), field(2), field(3), field(4), field(5), field(6)];
  const isTime = hour < 24 && minute < 60 && second < 60 && field(9) <= 24 && field(10) < 60;
  if (!isTime || month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) {
    return undefined;
  }
  const offset = (match[8] === '-' ? -1 : 1) * (field(9) * 3600 + field(10) * 60) + 0;
  const days = Date.UTC(2000, month - 1, day) / 86_400_000 + daysFromYear2000(year, month);
  const seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset;
  const nanos = Number((match[7] ?? '').slice(0, 9).padEnd(9, '0'));
  return seconds < MIN_SECONDS || seconds > MAX_SECONDS
    ? new EvaluationFailure('timestamp overflow')
    : new CelTimestamp(seconds, nanos, offset);
}

function daysIn(year: number, month: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return month === 2 ? 28 + Number(isLeap) : 30 + ((month + Math.trunc(month / 8)) % 2);
}

/** Days between the same day of a year and of 2000: Date.UTC takes years below 100 for those of the 20th century. */
function daysFromYear2000(year: number, month: number): number {
  const base = new Date(Date.UTC(2000, month - 1, 1));
  const other = new Date(base);
  other.setUTCFullYear(year);
  return (other.getTime() - base.getTime()) / 86_400_000;
}

/** Prints a timestamp as RFC 3339 has it, without zeros at the end of the fraction. */
export function formatTimestamp(timestamp: CelTimestamp): string {
  const local = new Date((timestamp.seconds + timestamp.offsetSeconds) * 1000).toISOString().slice(0, 19);
  const fraction = String(timestamp.nanos).padStart(9, '0').replace(/0+$/, '');
  return local + (fraction === '' ? '' : `.${fraction}`) + formatOffset(timestamp.offsetSeconds);
}

function formatOffset(seconds: number): string {
  if (seconds === 0) {
    return 'Z';
  }
  const minutes = Math.trunc(Math.abs(seconds) / 60);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${seconds < 0 ? '-' : '+'}${two(Math.trunc(minutes / 60))}:${two(minutes % 60)}`;
}

/** Prints a duration in seconds: `5400s`, `0.000001s`. */
export function formatDuration(duration: CelDuration): string {
  const seconds =
    Number(duration.nanoseconds / NANOS_PER_SECOND_BIG) + Number(duration.nanoseconds % NANOS_PER_SECOND_BIG) / 1e9;
  return `${withoutExponent(seconds)}s`;
}

/** A number between 10^-9 and 10^10 with as many digits as it takes, never with an exponent. */
function withoutExponent(value: number): string {
  const text = String(value);
  if (!text.includes('e')) {
    return text;
  }
  const digits = text.slice(0, text.indexOf('e')).replace(/[-.]/g, '').length;
  return value.toFixed(-Number(text.slice(text.indexOf('e') + 1)) + digits - 1);
}
