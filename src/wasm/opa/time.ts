import { intOperand, operand, stringOperand, undefinedBecause, wrongType } from './builtin.ts';
import type { BuiltinContext, OpaBuiltin } from './builtin.ts';
import { civilOf, daysInMonth, NS_PER_SECOND, secondsOf } from './civil-time.ts';
import type { CivilTime } from './civil-time.ts';
import { parseDuration } from './duration.ts';
import { integerOf, isInt64, RegoNumber } from './number.ts';
import { formatTime, NAMED_LAYOUTS, parseTime, weekdayName } from './time-layout.ts';
import type { ZonedTime } from './time-layout.ts';
import { isArray } from './value.ts';
import type { RegoValue } from './value.ts';

/** A time zone of the system's database, or UTC. */
type Zone = Intl.DateTimeFormat | undefined;

interface Moment {
  readonly ns: bigint;
  readonly zone: Zone;
  readonly layout: string;
}

/** Fuel for one question to the system's zone database. */
const FUEL_PER_ZONE_LOOKUP = 50_000;

/** A time: a number of nanoseconds, or an array of that, a zone and a layout. */
function momentOperand(operands: readonly RegoValue[], index: number, context: BuiltinContext): Moment {
  const value = operand(operands, index);
  if (value instanceof RegoNumber) {
    return { ns: nanoseconds(value), zone: undefined, layout: '' };
  }
  const [ns, zone = '', layout = ''] = isArray(value) ? value : wrongType(value, index, 'number', 'array');
  if (!(ns instanceof RegoNumber) || typeof zone !== 'string' || typeof layout !== 'string') {
    return undefinedBecause('time: expected [nanoseconds, zone, layout]');
  }
  return { ns: nanoseconds(ns), zone: zoneOf(zone, context), layout };
}

function nanoseconds(number: RegoNumber): bigint {
  const value = integerOf(number.text);
  return value !== undefined && isInt64(value) ? value : undefinedBecause('time: not a number of nanoseconds');
}

/** "Local" is UTC: the answer must not depend on where a policy server runs. */
function zoneOf(name: string, context: BuiltinContext): Zone {
  if (name === '' || name === 'UTC' || name === 'Local') {
    return undefined;
  }
  // Go knows no zones by offset, and looks for names as paths.
  if (!/^[A-Za-z][A-Za-z0-9_+/-]*$/.test(name)) {
    undefinedBecause('time: unknown zone');
  }
  context.charge(FUEL_PER_ZONE_LOOKUP);
  try {
    return new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset' });
  } catch (error) {
    return undefinedBecause('time: unknown zone', error);
  }
}

/** Seconds east of UTC at a time. */
function offsetAt(zone: Zone, seconds: number): number {
  if (zone === undefined) {
    return 0;
  }
  const name = zone.formatToParts(seconds * 1000).find((part) => part.type === 'timeZoneName')?.value ?? '';
  const [, sign, hours = '0', minutes = '0', rest = '0'] = /^GMT([+-])(\d{2}):(\d{2})(?::(\d{2}))?$/.exec(name) ?? [];
  const offset = Number(hours) * 3600 + Number(minutes) * 60 + Number(rest);
  return sign === '-' ? -offset : offset;
}

function localTime({ ns, zone }: Moment): CivilTime & { readonly offsetSeconds: number } {
  const fraction = ((ns % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
  const seconds = Number((ns - fraction) / NS_PER_SECOND);
  const offsetSeconds = offsetAt(zone, seconds);
  return { ...civilOf(seconds + offsetSeconds, Number(fraction)), offsetSeconds };
}

/** English-speaking places whose data has the abbreviations of their region; ICU has no list of all. */
const ABBREVIATION_LOCALES = ['en-US', 'en-GB', 'en-AU', 'en-NZ', 'en-IN', 'en-ZA'];

/** The abbreviation of a zone, or its offset for zones that have none. */
function zoneName({ ns, zone }: Moment, offsetSeconds: number): string {
  if (zone === undefined) {
    return 'UTC';
  }
  const { timeZone } = zone.resolvedOptions();
  const names = ABBREVIATION_LOCALES.map((locale) =>
    new Intl.DateTimeFormat(locale, { timeZone, timeZoneName: 'short' })
      .formatToParts(Number(ns / 1_000_000n))
      .find((part) => part.type === 'timeZoneName'),
  );
  const letters = names.find((name) => /^[A-Z]{3,5}$/.test(name?.value ?? ''))?.value;
  const magnitude = Math.abs(offsetSeconds);
  const minutes = Math.trunc(magnitude / 60) % 60;
  const digits =
    String(Math.trunc(magnitude / 3600)).padStart(2, '0') + (minutes === 0 ? '' : String(minutes).padStart(2, '0'));
  return letters ?? `${offsetSeconds < 0 ? '-' : '+'}${digits}`;
}

function result(ns: bigint): RegoNumber {
  return isInt64(ns) ? RegoNumber.of(ns) : undefinedBecause('time: out of range');
}

const now: OpaBuiltin = (_, context) => RegoNumber.of(context.nowNs);

const parse: OpaBuiltin = (operands) => {
  const layout = stringOperand(operands, 0);
  return result(parseTime(stringOperand(operands, 1), NAMED_LAYOUTS.get(layout) ?? layout));
};

const RFC_3339 = NAMED_LAYOUTS.get('RFC3339') ?? '';

const parseRfc3339: OpaBuiltin = (operands) => result(parseTime(stringOperand(operands, 0), RFC_3339));

const parseDurationNs: OpaBuiltin = (operands) => RegoNumber.of(parseDuration(stringOperand(operands, 0)));

const format: OpaBuiltin = (operands, context) => {
  const moment = momentOperand(operands, 0, context);
  const layout = NAMED_LAYOUTS.get(moment.layout === '' ? 'RFC3339Nano' : moment.layout) ?? moment.layout;
  const local = localTime(moment);
  const zoned: ZonedTime = { ...local, zoneName: layout.includes('MST') ? zoneName(moment, local.offsetSeconds) : '' };
  return formatTime(zoned, layout);
};

const date: OpaBuiltin = (operands, context) => {
  const { year, month, day } = localTime(momentOperand(operands, 0, context));
  return [year, month, day].map((part) => RegoNumber.of(part));
};

const clock: OpaBuiltin = (operands, context) => {
  const { hour, minute, second } = localTime(momentOperand(operands, 0, context));
  return [hour, minute, second].map((part) => RegoNumber.of(part));
};

const weekday: OpaBuiltin = (operands, context) => weekdayName(localTime(momentOperand(operands, 0, context)));

/** Years, months or days beyond this leave the range of int64 nanoseconds (584 years) from anywhere. */
const MAX_SHIFT = 10_000_000n;

const addDate: OpaBuiltin = (operands, context) => {
  const moment = momentOperand(operands, 0, context);
  const [years = 0, months = 0, days = 0] = [1, 2, 3].map((index) => {
    const shift = intOperand(operands, index);
    return shift > MAX_SHIFT || shift < -MAX_SHIFT ? undefinedBecause('time.add_date: out of range') : Number(shift);
  });
  const local = localTime(moment);
  const wanted = secondsOf({ ...local, year: local.year + years, month: local.month + months, day: local.day + days });
  return result(BigInt(wanted - offsetOfLocal(moment.zone, wanted)) * NS_PER_SECOND + BigInt(local.nanosecond));
};

/** The offset of a local time. Where clocks are changed, Go's choice: the offset in force at its first guess. */
function offsetOfLocal(zone: Zone, localSeconds: number): number {
  const guess = offsetAt(zone, localSeconds);
  return guess === 0 ? 0 : offsetAt(zone, localSeconds - guess);
}

/** Years, months, days, hours, minutes and seconds between two times, in the zone of the first. */
const diff: OpaBuiltin = (operands, context) => {
  const first = momentOperand(operands, 0, context);
  const second = { ...momentOperand(operands, 1, context), zone: first.zone };
  const [from, to] =
    first.ns > second.ns ? [localTime(second), localTime(first)] : [localTime(first), localTime(second)];
  let [years, months, days] = [to.year - from.year, to.month - from.month, to.day - from.day];
  let [hours, minutes, seconds] = [to.hour - from.hour, to.minute - from.minute, to.second - from.second];
  if (seconds < 0) {
    seconds += 60;
    minutes -= 1;
  }
  if (minutes < 0) {
    minutes += 60;
    hours -= 1;
  }
  if (hours < 0) {
    hours += 24;
    days -= 1;
  }
  if (days < 0) {
    days += daysInMonth(from.year, from.month);
    months -= 1;
  }
  if (months < 0) {
    months += 12;
    years -= 1;
  }
  return [years, months, days, hours, minutes, seconds].map((part) => RegoNumber.of(part));
};

export const timeBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['time.now_ns', now],
  ['time.parse_ns', parse],
  ['time.parse_rfc3339_ns', parseRfc3339],
  ['time.parse_duration_ns', parseDurationNs],
  ['time.format', format],
  ['time.date', date],
  ['time.clock', clock],
  ['time.weekday', weekday],
  ['time.add_date', addDate],
  ['time.diff', diff],
];
