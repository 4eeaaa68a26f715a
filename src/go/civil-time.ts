/** A date and time of day on the proleptic Gregorian calendar. */
export interface CivilTime {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly nanosecond: number;
}

export const NS_PER_SECOND = 1_000_000_000n;
const SECONDS_PER_DAY = 86_400;

/** Seconds since 1970 of a civil time in UTC. Values out of range are carried, as `time.Date` does. */
export function secondsOf(time: CivilTime): number {
  const days = daysFromCivil(
    time.year + Math.floor((time.month - 1) / 12),
    (((time.month - 1) % 12) + 12) % 12,
    time.day,
  );
  return days * SECONDS_PER_DAY + time.hour * 3600 + time.minute * 60 + time.second;
}

/** Days since 1970-01-01; months count from 0. */
function daysFromCivil(year: number, month: number, day: number): number {
  // In years that begin in March, the leap day is the last day.
  // https://howardhinnant.github.io/date_algorithms.html#days_from_civil
  const shifted = month < 2 ? year - 1 : year;
  const era = Math.floor(shifted / 400);
  const yearOfEra = shifted - era * 400;
  const dayOfYear = Math.floor((153 * ((month + 10) % 12) + 2) / 5) + day - 1;
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** The civil time in UTC of seconds since 1970. */
export function civilOf(seconds: number, nanosecond: number): CivilTime {
  const days = Math.floor(seconds / SECONDS_PER_DAY);
  const rest = seconds - days * SECONDS_PER_DAY;
  const shifted = days + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
    hour: Math.floor(rest / 3600),
    minute: Math.floor(rest / 60) % 60,
    second: rest % 60,
    nanosecond,
  };
}

export function isLeap(year: number): boolean {
  return (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
}

/** @param month 1 to 12 */
export function daysInMonth(year: number, month: number): number {
  return month === 2 && isLeap(year) ? 29 : ([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1] ?? 0);
}

/** 1 for January 1. */
export function dayOfYear({ year, month, day }: CivilTime): number {
  return daysFromCivil(year, month - 1, day) - daysFromCivil(year, 0, 1) + 1;
}

/** 0 for Sunday. */
export function weekdayOf({ year, month, day }: CivilTime): number {
  return (((daysFromCivil(year, month - 1, day) + 4) % 7) + 7) % 7;
}
