import {
  civilOf,
  daysInMonth,
  formatTime,
  isInt64,
  NAMED_LAYOUTS,
  NS_PER_SECOND,
  parseRfc3339,
  parseTime,
  secondsOf,
  TimeZone,
  weekdayName,
} from '../../../go/index.ts';
import type { CivilTime } from '../../../go/index.ts';
import { intOperand, operand, stringOperand, undefinedBecause, wrongType } from './builtin.ts';
import type { BuiltinContext, OpaBuiltin } from './builtin.ts';
import { parseDuration } from './duration.ts';
import { integerOf, RegoNumber } from './number.ts';
import { isArray } from './value.ts';
import type { RegoValue } from './value.ts';

interface Moment {
  readonly ns: bigint;
  readonly zone: TimeZone;
  readonly layout: string;
}

/** Fuel per lookup in the time zone database. */
const FUEL_PER_ZONE_LOOKUP = 50_000;

/** Fuel per character of a layout, which may be an element that is read and written (0.5 µs). */
const FUEL_PER_LAYOUT_CHAR = 1000;

/** A time operand: nanoseconds, or an array of nanoseconds, zone and layout. */
function momentOperand(operands: readonly RegoValue[], index: number, context: BuiltinContext): Moment {
  const value = operand(operands, index);
  if (value instanceof RegoNumber) {
    return { ns: nanoseconds(value), zone: TimeZone.UTC, layout: '' };
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

function zoneOf(name: string, context: BuiltinContext): TimeZone {
  if (name !== '' && name !== 'UTC') {
    context.charge(FUEL_PER_ZONE_LOOKUP);
  }
  return TimeZone.load(name) ?? undefinedBecause('time: unknown zone');
}

function nanosecondOf({ ns }: Moment): bigint {
  return ((ns % NS_PER_SECOND) + NS_PER_SECOND) % NS_PER_SECOND;
}

function secondsAt(moment: Moment): number {
  return Number((moment.ns - nanosecondOf(moment)) / NS_PER_SECOND);
}

function localTime(moment: Moment): CivilTime & { readonly offsetSeconds: number } {
  const seconds = secondsAt(moment);
  const offsetSeconds = moment.zone.offsetAt(seconds);
  return { ...civilOf(seconds + offsetSeconds, Number(nanosecondOf(moment))), offsetSeconds };
}

function invalidTime(): never {
  return undefinedBecause('time: not a time in this layout');
}

function result(ns: bigint): RegoNumber {
  return isInt64(ns) ? RegoNumber.of(ns) : undefinedBecause('time: out of range');
}

const now: OpaBuiltin = (_, context) => RegoNumber.of(context.nowNs);

const parse: OpaBuiltin = (operands, context) => {
  const layout = stringOperand(operands, 0);
  context.charge(layout.length * FUEL_PER_LAYOUT_CHAR);
  return result(parseTime(stringOperand(operands, 1), NAMED_LAYOUTS.get(layout) ?? layout) ?? invalidTime());
};

const parseRfc3339Ns: OpaBuiltin = (operands) => {
  const time = parseRfc3339(stringOperand(operands, 0)) ?? invalidTime();
  return result(BigInt(time.seconds) * NS_PER_SECOND + BigInt(time.nanoseconds));
};

const parseDurationNs: OpaBuiltin = (operands) => RegoNumber.of(parseDuration(stringOperand(operands, 0)));

const format: OpaBuiltin = (operands, context) => {
  const moment = momentOperand(operands, 0, context);
  const layout = NAMED_LAYOUTS.get(moment.layout === '' ? 'RFC3339Nano' : moment.layout) ?? moment.layout;
  const local = localTime(moment);
  context.charge(layout.length * FUEL_PER_LAYOUT_CHAR);
  return formatTime(
    { ...local, zoneName: layout.includes('MST') ? moment.zone.abbreviationAt(secondsAt(moment)) : '' },
    layout,
  );
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

/** Larger numbers of years, months or days always exceed int64 nanoseconds (584 years). */
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

/** The offset of a local time. A local time can occur twice or never at a clock change: the result is then that of Go. */
function offsetOfLocal(zone: TimeZone, localSeconds: number): number {
  const guess = zone.offsetAt(localSeconds);
  return guess === 0 ? 0 : zone.offsetAt(localSeconds - guess);
}

/** Years, months, days, hours, minutes and seconds between two times, in the zone of the first one. */
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
  ['time.parse_rfc3339_ns', parseRfc3339Ns],
  ['time.parse_duration_ns', parseDurationNs],
  ['time.format', format],
  ['time.date', date],
  ['time.clock', clock],
  ['time.weekday', weekday],
  ['time.add_date', addDate],
  ['time.diff', diff],
];
