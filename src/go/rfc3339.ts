import { daysInMonth, secondsOf } from './civil-time.ts';

/** A moment, and the offset of the zone that it was written in. */
export interface Timestamp {
  /** Seconds since 1970. */
  readonly seconds: number;
  /** 0 to 999,999,999. */
  readonly nanoseconds: number;
  /** Seconds east of UTC. */
  readonly offsetSeconds: number;
}

/** Go reads hours of one digit, and a comma before the fraction. */
const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})T(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/;

/** Reads a timestamp as `time.Parse(time.RFC3339, text)` does; undefined when Go reports an error. */
export function parseRfc3339(text: string): Timestamp | undefined {
  const match = RFC3339.exec(text);
  if (match === null) {
    return undefined;
  }
  const field = (index: number): number => Number(match[index] ?? 0);
  const [year, month, day, hour, minute, second] = [field(1), field(2), field(3), field(4), field(5), field(6)];
  const [offsetHours, offsetMinutes] = [field(9), field(10)];
  const isDate = month >= 1 && month <= 12 && day >= 1 && day <= daysInMonth(year, month);
  const isTime = hour < 24 && minute < 60 && second < 60;
  // Go allows offsets of 24 hours and of 60 minutes.
  if (!isDate || !isTime || offsetHours > 24 || offsetMinutes > 60) {
    return undefined;
  }
  const magnitude = offsetHours * 3600 + offsetMinutes * 60;
  const offsetSeconds = match[8] === '-' ? 0 - magnitude : magnitude;
  const nanoseconds = Number((match[7] ?? '').slice(0, 9).padEnd(9, '0'));
  const local = secondsOf({ year, month, day, hour, minute, second, nanosecond: nanoseconds });
  return { seconds: local - offsetSeconds, nanoseconds, offsetSeconds };
}
