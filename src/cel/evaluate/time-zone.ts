import { EvaluationFailure } from '../value.ts';
import type { CelTimestamp } from './time.ts';

/** Formatters kept, as making one takes a thousand times what using it does. Expressions name few zones. */
const MAX_ZONES = 64;

const ZONE_NAME = /^[A-Za-z][A-Za-z0-9_+/-]*$/;
const FIXED_OFFSET = /^([+-]?\d{1,4}):([+-]?\d{1,4})$/;

/** A moment as clocks of a time zone show it: what the accessors of timestamps read. */
export interface LocalTime {
  readonly year: number;
  /** Counted from 0. */
  readonly month: number;
  /** Counted from 1. */
  readonly day: number;
  /** Counted from 0. */
  readonly dayOfYear: number;
  /** Sunday is 0. */
  readonly dayOfWeek: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
  readonly milliseconds: number;
}

/** The time zones that expressions name: those of IANA, and offsets such as `-08:00`. */
export class TimeZones {
  readonly #formats = new Map<string, Intl.DateTimeFormat | undefined>();

  /** The local time of a moment in a zone; a failure when there is no such zone. */
  localTime(timestamp: CelTimestamp, zone: string): LocalTime | EvaluationFailure {
    const offset = this.#offsetSeconds(timestamp, zone);
    return typeof offset === 'number' ? shifted(timestamp, offset) : offset;
  }

  #offsetSeconds(timestamp: CelTimestamp, zone: string): number | EvaluationFailure {
    if (zone === 'UTC' || zone === '') {
      return 0;
    }
    if (zone.includes(':')) {
      return fixedOffset(zone);
    }
    const format = this.#formatOf(zone);
    return format === undefined
      ? new EvaluationFailure(`unknown time zone ${zone}`)
      : offsetAt(format, timestamp.seconds * 1000);
  }

  #formatOf(zone: string): Intl.DateTimeFormat | undefined {
    if (!this.#formats.has(zone)) {
      if (this.#formats.size >= MAX_ZONES) {
        this.#formats.clear();
      }
      this.#formats.set(zone, makeFormat(zone));
    }
    return this.#formats.get(zone);
  }
}

function makeFormat(zone: string): Intl.DateTimeFormat | undefined {
  if (!ZONE_NAME.test(zone)) {
    return undefined;
  }
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  } catch {
    return undefined;
  }
}

/** Reads the offset off what a formatter prints: `GMT`, `GMT-08:00`, `GMT-07:52:58`. */
function offsetAt(format: Intl.DateTimeFormat, milliseconds: number): number {
  const parts = format.formatToParts(milliseconds);
  const name = parts.find((part) => part.type === 'timeZoneName')?.value ?? 'GMT';
  const [hours = 0, minutes = 0, seconds = 0] = name.slice(4).split(':').map(Number);
  return (name.charAt(3) === '-' ? -1 : 1) * (hours * 3600 + minutes * 60 + seconds);
}

function fixedOffset(zone: string): number | EvaluationFailure {
  const match = FIXED_OFFSET.exec(zone);
  if (match === null) {
    const part = zone.slice(0, zone.indexOf(':'));
    const wrong = /^[+-]?\d+$/.test(part) ? zone.slice(zone.indexOf(':') + 1) : part;
    return new EvaluationFailure(`strconv.Atoi: parsing ${JSON.stringify(wrong)}: invalid syntax`);
  }
  const hours = Number(match[1]);
  const minutes = Number(match[2]);
  return (zone.startsWith('-') ? hours * 60 - minutes : hours * 60 + minutes) * 60;
}

function shifted(timestamp: CelTimestamp, offset: number): LocalTime {
  const date = new Date((timestamp.seconds + offset) * 1000);
  const midnight = Date.UTC(2000, date.getUTCMonth(), date.getUTCDate());
  const newYear = new Date(midnight);
  newYear.setUTCFullYear(date.getUTCFullYear(), 0, 1);
  const today = new Date(midnight);
  today.setUTCFullYear(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate());
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth(),
    day: date.getUTCDate(),
    dayOfYear: (today.getTime() - newYear.getTime()) / 86_400_000,
    dayOfWeek: date.getUTCDay(),
    hours: date.getUTCHours(),
    minutes: date.getUTCMinutes(),
    seconds: date.getUTCSeconds(),
    milliseconds: Math.trunc(timestamp.nanos / 1_000_000),
  };
}
