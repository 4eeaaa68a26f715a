import { dayOfYear, daysInMonth, isLeap, NS_PER_SECOND, secondsOf, weekdayOf } from './civil-time.ts';
import type { CivilTime } from './civil-time.ts';

export const RFC3339_NANO = '2006-01-02T15:04:05.999999999Z07:00';

/** Layouts that are constants of Go's package time, by name. */
export const NAMED_LAYOUTS: ReadonlyMap<string, string> = new Map([
  ['ANSIC', 'Mon Jan _2 15:04:05 2006'],
  ['UnixDate', 'Mon Jan _2 15:04:05 MST 2006'],
  ['RubyDate', 'Mon Jan 02 15:04:05 -0700 2006'],
  ['RFC822', '02 Jan 06 15:04 MST'],
  ['RFC822Z', '02 Jan 06 15:04 -0700'],
  ['RFC850', 'Monday, 02-Jan-06 15:04:05 MST'],
  ['RFC1123', 'Mon, 02 Jan 2006 15:04:05 MST'],
  ['RFC1123Z', 'Mon, 02 Jan 2006 15:04:05 -0700'],
  ['RFC3339', '2006-01-02T15:04:05Z07:00'],
  ['RFC3339Nano', RFC3339_NANO],
]);

/** A local time with its zone. */
export interface ZonedTime extends CivilTime {
  /** Seconds east of UTC. */
  readonly offsetSeconds: number;
  /** Abbreviation such as `CET`, for layouts with `MST`. */
  readonly zoneName: string;
}

/**
 * The elements of Go's reference time, longest first where one is a prefix of another. Names count only when no
 * lower-case letter follows.
 */
const ELEMENT =
  /January|Jan(?![a-z])|Monday|Mon(?![a-z])|MST|002|0[1-6]|15|1|2006|2|__2|_2(?!006)|3|4|5|PM|pm|-07:00:00|-070000|-07:00|-0700|-07|Z07:00:00|Z070000|Z07:00|Z0700|Z07|[.,](?:0+|9+)(?!\d)/g;

interface Element {
  /** Text before the element. */
  readonly literal: string;
  /** The element as the layout has it; empty at the end. */
  readonly code: string;
}

function elementsOf(layout: string): Element[] {
  const elements: Element[] = [];
  let at = 0;
  for (const found of layout.matchAll(ELEMENT)) {
    elements.push({ literal: layout.slice(at, found.index), code: found[0] });
    at = found.index + found[0].length;
  }
  return [...elements, { literal: layout.slice(at), code: '' }];
}

const MONTHS = 'January February March April May June July August September October November December'.split(' ');
const WEEKDAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** Of a month or a day: `September`, `Wednesday`. */
const LONGEST_NAME = 9;

/** English name of the day of the week. */
export function weekdayName(time: CivilTime): string {
  return WEEKDAYS[weekdayOf(time)] ?? '';
}

/** Formats a time by a Go layout (https://pkg.go.dev/time#Layout). */
export function formatTime(time: ZonedTime, layout: string): string {
  return elementsOf(layout)
    .map(({ literal, code }) => literal + formatElement(time, code))
    .join('');
}

function formatElement(time: ZonedTime, code: string): string {
  const padded = (value: number, width = 2, filler = '0'): string => String(value).padStart(width, filler);
  const hour12 = time.hour % 12 === 0 ? 12 : time.hour % 12;
  switch (code) {
    case 'January':
      return MONTHS[time.month - 1] ?? '';
    case 'Jan':
      return (MONTHS[time.month - 1] ?? '').slice(0, 3);
    case 'Monday':
      return weekdayName(time);
    case 'Mon':
      return weekdayName(time).slice(0, 3);
    case 'MST':
      return time.zoneName;
    case '002':
      return padded(dayOfYear(time), 3);
    case '__2':
      return padded(dayOfYear(time), 3, ' ');
    case '01':
      return padded(time.month);
    case '1':
      return String(time.month);
    case '02':
      return padded(time.day);
    case '_2':
      return padded(time.day, 2, ' ');
    case '2':
      return String(time.day);
    case '03':
      return padded(hour12);
    case '3':
      return String(hour12);
    case '15':
      return padded(time.hour);
    case '04':
      return padded(time.minute);
    case '4':
      return String(time.minute);
    case '05':
      return padded(time.second);
    case '5':
      return String(time.second);
    case '06':
      return padded(time.year % 100);
    case '2006':
      return padded(time.year, 4);
    case 'PM':
      return time.hour >= 12 ? 'PM' : 'AM';
    case 'pm':
      return time.hour >= 12 ? 'pm' : 'am';
    case '':
      return '';
    default:
      return '.,'.includes(code[0] ?? '?')
        ? formatFraction(time.nanosecond, code)
        : formatOffset(time.offsetSeconds, code);
  }
}

function formatFraction(nanosecond: number, code: string): string {
  const digits = String(nanosecond)
    .padStart(9, '0')
    .slice(0, code.length - 1)
    .padEnd(code.length - 1, '0');
  const kept = code[1] === '9' ? digits.replace(/0+$/, '') : digits;
  return kept === '' ? '' : `${code[0] ?? ''}${kept}`;
}

function formatOffset(seconds: number, code: string): string {
  if (code.startsWith('Z') && seconds === 0) {
    return 'Z';
  }
  const magnitude = Math.abs(seconds);
  const parts = [Math.trunc(magnitude / 3600), Math.trunc(magnitude / 60) % 60, magnitude % 60];
  const count = code.replace(/[^0-9]/g, '').length / 2;
  const text = parts
    .slice(0, count)
    .map((part) => String(part).padStart(2, '0'))
    .join(code.includes(':') ? ':' : '');
  return (seconds < 0 ? '-' : '+') + text;
}

/**
 * Nanoseconds since 1970 of a text in a Go layout (`time.Parse`). Zone abbreviations count as UTC, as in Go without a
 * time zone database. Undefined when Go reports an error.
 */
export function parseTime(text: string, layout: string): bigint | undefined {
  try {
    return new TimeReader(text).read(elementsOf(layout));
  } catch (error) {
    if (error instanceof Mismatch) {
      return undefined;
    }
    throw error;
  }
}

/** The text does not match the layout. */
class Mismatch extends Error {}

class TimeReader {
  #rest: string;
  #year = 0;
  #month = 0;
  #day = 0;
  #yearDay = 0;
  #hour = 0;
  #minute = 0;
  #second = 0;
  #nanosecond = 0;
  #offset = 0;
  #half = '';

  constructor(text: string) {
    this.#rest = text;
  }

  read(elements: readonly Element[]): bigint {
    for (const [index, { literal, code }] of elements.entries()) {
      this.#skip(literal);
      this.#element(code, elements[index + 1]);
    }
    if (this.#rest !== '') {
      this.#fail('extra text');
    }
    if (this.#half === 'pm' && this.#hour < 12) {
      this.#hour += 12;
    } else if (this.#half === 'am' && this.#hour === 12) {
      this.#hour = 0;
    }
    this.#settleDay();
    const seconds = secondsOf({
      year: this.#year,
      month: this.#month,
      day: this.#day,
      hour: this.#hour,
      minute: this.#minute,
      second: this.#second,
      nanosecond: 0,
    });
    return BigInt(seconds - this.#offset) * NS_PER_SECOND + BigInt(this.#nanosecond);
  }

  #fail(what: string): never {
    throw new Mismatch(what);
  }

  /** A run of spaces in the layout matches any number of spaces, and none at the end of the text. */
  #skip(literal: string): void {
    for (const part of literal.match(/ +|[^ ]/gu) ?? []) {
      if (part.startsWith(' ')) {
        if (this.#rest !== '' && !this.#rest.startsWith(' ')) {
          this.#fail('expected a space');
        }
        this.#rest = this.#rest.replace(/^ +/, '');
      } else if (this.#rest.startsWith(part)) {
        this.#rest = this.#rest.slice(part.length);
      } else {
        this.#fail(`expected ${part}`);
      }
    }
  }

  #take(pattern: RegExp): RegExpExecArray {
    const match = pattern.exec(this.#rest);
    if (match === null) {
      return this.#fail('unexpected text');
    }
    this.#rest = this.#rest.slice(match[0].length);
    return match;
  }

  #number(pattern: RegExp, from: number, to: number): number {
    const value = Number(this.#take(pattern)[0]);
    return value >= from && value <= to ? value : this.#fail('out of range');
  }

  #name(names: readonly string[], length?: number): number {
    const lower = this.#rest.slice(0, LONGEST_NAME).toLowerCase();
    const index = names.findIndex((name) => lower.startsWith(name.slice(0, length).toLowerCase()));
    if (index === -1) {
      return this.#fail('unknown name');
    }
    this.#rest = this.#rest.slice((names[index] ?? '').slice(0, length).length);
    return index;
  }

  #element(code: string, next: Element | undefined): void {
    const oneOrTwo = /^\d{1,2}/;
    const two = /^\d{2}/;
    switch (code) {
      case '':
        return;
      case '06': {
        const year = this.#number(two, 0, 99);
        this.#year = year + (year >= 69 ? 1900 : 2000);
        return;
      }
      case '2006':
        this.#year = this.#number(/^\d{4}/, 0, 9999);
        return;
      case 'Jan':
        this.#month = this.#name(MONTHS, 3) + 1;
        return;
      case 'January':
        this.#month = this.#name(MONTHS) + 1;
        return;
      case '01':
      case '1':
        this.#month = this.#number(code === '01' ? two : oneOrTwo, 1, 12);
        return;
      case 'Mon':
        this.#name(WEEKDAYS, 3);
        return;
      case 'Monday':
        this.#name(WEEKDAYS);
        return;
      case '_2':
        this.#rest = this.#rest.replace(/^ /, '');
        this.#day = this.#dayNumber(oneOrTwo);
        return;
      case '02':
      case '2':
        this.#day = this.#dayNumber(code === '02' ? two : oneOrTwo);
        return;
      case '__2':
        this.#rest = this.#rest.replace(/^ {1,2}/, '');
        this.#yearDay = this.#number(/^\d{1,3}/, 1, 366);
        return;
      case '002':
        this.#yearDay = this.#number(/^\d{3}/, 1, 366);
        return;
      case '15':
        this.#hour = this.#number(oneOrTwo, 0, 23);
        return;
      case '03':
      case '3':
        this.#hour = this.#number(code === '03' ? two : oneOrTwo, 0, 12);
        return;
      case '04':
      case '4':
        this.#minute = this.#number(code === '04' ? two : oneOrTwo, 0, 59);
        return;
      case '05':
      case '5':
        this.#second = this.#number(code === '05' ? two : oneOrTwo, 0, 59);
        this.#impliedFraction(next);
        return;
      case 'PM':
        this.#half = this.#take(/^(?:AM|PM)/)[0].toLowerCase();
        return;
      case 'pm':
        this.#half = this.#take(/^(?:am|pm)/)[0];
        return;
      case 'MST':
        this.#zoneName();
        return;
      default:
        if ('.,'.includes(code[0] ?? '?')) {
          this.#fraction(code);
        } else {
          this.#zoneOffset(code);
        }
    }
  }

  #dayNumber(pattern: RegExp): number {
    // Go reads day 0 as "no day", and refuses it when it checks the day against the month.
    return this.#number(pattern, 1, 31);
  }

  /** Seconds may be followed by a fraction that is not in the layout. */
  #impliedFraction(next: Element | undefined): void {
    const isNamed = next !== undefined && next.literal === '' && /^[.,]/.test(next.code);
    if (!isNamed && /^[.,]\d/.test(this.#rest)) {
      this.#nanosecond = nanosecondsOf(this.#take(/^[.,]\d+/)[0]);
    }
  }

  #fraction(code: string): void {
    if (code[1] === '0') {
      const text = this.#rest.slice(0, code.length);
      if (text.length !== code.length || !/^[.,]\d+$/.test(text)) {
        this.#fail('fraction of a second');
      }
      this.#rest = this.#rest.slice(code.length);
      this.#nanosecond = nanosecondsOf(text);
    } else if (/^[.,]\d/.test(this.#rest)) {
      this.#nanosecond = nanosecondsOf(this.#take(/^[.,]\d+/)[0]);
    }
  }

  #zoneOffset(code: string): void {
    if (code.startsWith('Z') && this.#rest.startsWith('Z')) {
      this.#rest = this.#rest.slice(1);
      return;
    }
    const count = code.replace(/[^0-9]/g, '').length / 2;
    const separator = code.includes(':') ? ':' : '';
    const pattern = ['(\\d{2})', '(\\d{2})', '(\\d{2})'].slice(0, count).join(separator);
    const [, sign, hours, minutes = '0', seconds = '0'] = this.#take(new RegExp(`^([+-])${pattern}`));
    if (Number(hours) > 24 || Number(minutes) > 60 || Number(seconds) > 60) {
      this.#fail('zone offset out of range');
    }
    const offset = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    this.#offset = sign === '-' ? -offset : offset;
  }

  #zoneName(): void {
    this.#take(
      /^(?:UTC|ChST|MeST|GMT(?:[+-](?:1\d|2[0-3]|0?\d)(?!\d))?|[+-](?:1\d|2[0-3]|0?\d)(?!\d)|[A-Z]{4}T(?![A-Z])|[A-Z]{3}T(?![A-Z])|WITA(?![A-Z])|[A-Z]{3}(?![A-Z]))/,
    );
  }

  #settleDay(): void {
    if (this.#yearDay > 0) {
      this.#fromYearDay();
    }
    this.#month ||= 1;
    this.#day ||= 1;
    if (this.#day > daysInMonth(this.#year, this.#month)) {
      this.#fail('day out of range');
    }
  }

  #fromYearDay(): void {
    if (this.#yearDay > (isLeap(this.#year) ? 366 : 365)) {
      this.#fail('day out of range');
    }
    let month = 1;
    let day = this.#yearDay;
    while (day > daysInMonth(this.#year, month)) {
      day -= daysInMonth(this.#year, month);
      month += 1;
    }
    if ((this.#month !== 0 && this.#month !== month) || (this.#day !== 0 && this.#day !== day)) {
      this.#fail('day of the year does not match');
    }
    this.#month = month;
    this.#day = day;
  }
}

/** Digits beyond nanoseconds are dropped. */
function nanosecondsOf(fraction: string): number {
  return Number(fraction.slice(1, 10).padEnd(9, '0'));
}
