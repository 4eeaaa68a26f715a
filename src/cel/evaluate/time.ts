import {
  civilOf,
  formatFloat,
  formatTime,
  NS_PER_SECOND,
  parseDuration as parseGoDuration,
  parseRfc3339,
  RFC3339_NANO,
} from '../../go/index.ts';
import { CelObject, EvaluationFailure } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { MAX_INT, MIN_INT } from './number.ts';

/** Range of timestamps in seconds since 1970: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z. */
export const MIN_SECONDS = -62_135_596_800;
export const MAX_SECONDS = 253_402_300_799;

/** A point in time with nanoseconds, and the UTC offset of its text, with which it is printed. */
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

/** A duration with nanoseconds, up to 292 years. */
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

/** A duration in nanoseconds; a failure beyond 64 bits. */
export function durationOf(nanoseconds: bigint): CelDuration | EvaluationFailure {
  return nanoseconds < MIN_INT || nanoseconds > MAX_INT
    ? new EvaluationFailure('integer overflow')
    : new CelDuration(nanoseconds);
}

/** `timestamp + duration`. */
export function addDuration(timestamp: CelTimestamp, nanoseconds: bigint): CelResult {
  const total = BigInt(timestamp.seconds) * NS_PER_SECOND + BigInt(timestamp.nanos) + nanoseconds;
  const nanos = ((total % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
  const seconds = Number((total - nanos) / NS_PER_SECOND);
  return seconds < MIN_SECONDS || seconds > MAX_SECONDS
    ? new EvaluationFailure('timestamp overflow')
    : new CelTimestamp(seconds, Number(nanos), timestamp.offsetSeconds);
}

/** `timestamp - timestamp`. */
export function timeBetween(later: CelTimestamp, earlier: CelTimestamp): CelResult {
  const seconds = BigInt(later.seconds - earlier.seconds);
  return durationOf(seconds * NS_PER_SECOND + BigInt(later.nanos - earlier.nanos));
}

/** Parses a duration in Go's format: `1h30m`, `-1.5s`; undefined if it is invalid or too long. */
export function parseDuration(text: string): CelDuration | undefined {
  const nanoseconds = parseGoDuration(text);
  return nanoseconds === undefined ? undefined : new CelDuration(nanoseconds);
}

/** Parses an RFC 3339 timestamp; undefined if it is invalid, a failure outside of the years 1 to 9999. */
export function parseTimestamp(text: string): CelTimestamp | EvaluationFailure | undefined {
  const time = parseRfc3339(text);
  if (time === undefined) {
    return undefined;
  }
  return time.seconds < MIN_SECONDS || time.seconds > MAX_SECONDS
    ? new EvaluationFailure('timestamp overflow')
    : new CelTimestamp(time.seconds, time.nanoseconds, time.offsetSeconds);
}

/** Prints a timestamp as RFC 3339 without trailing zeros in the fraction. */
export function formatTimestamp({ seconds, nanos, offsetSeconds }: CelTimestamp): string {
  return formatTime({ ...civilOf(seconds + offsetSeconds, nanos), offsetSeconds, zoneName: '' }, RFC3339_NANO);
}

/** Prints a duration in seconds: `5400s`, `0.000001s`. */
export function formatDuration(duration: CelDuration): string {
  const seconds = Number(duration.nanoseconds / NS_PER_SECOND) + Number(duration.nanoseconds % NS_PER_SECOND) / 1e9;
  return `${formatFloat(seconds, 'f')}s`;
}
