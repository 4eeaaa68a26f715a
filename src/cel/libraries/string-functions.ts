import { SHORT_ESCAPES } from '../../go/index.ts';
import { indexOfPart, lastIndexOfPart, splitAtParts } from '../../values/index.ts';
import type { CelResult } from '../model/value.ts';
import { CodePoints } from './code-points.ts';
import { fail } from './declare.ts';
import type { Int } from './declare.ts';
import { MAX_TEXT_LENGTH } from './limits.ts';

/** String functions of the extension library of API servers. Positions count code points. */

export function charAt(text: string, index: Int): CelResult {
  const points = new CodePoints(text);
  if (index < 0 || index > points.length) {
    return fail(`index out of range: ${index}`);
  }
  return points.slice(Number(index), Number(index) + 1);
}

export function indexOf(text: string, part: string, offset: Int = 0): CelResult {
  if (offset < 0) {
    return fail(`index out of range: ${offset}`);
  }
  const points = new CodePoints(text);
  if (part === '') {
    return offset > points.length ? points.length : Number(offset);
  }
  const found = offset >= points.length ? -1 : indexOfPart(text, part, points.offsetOf(Number(offset)));
  return found < 0 ? -1 : points.indexOf(found);
}

export function lastIndexOf(text: string, part: string, offset?: Int): CelResult {
  if (offset !== undefined && offset < 0) {
    return fail(`index out of range: ${offset}`);
  }
  const points = new CodePoints(text);
  const { length } = points;
  if (part === '') {
    return offset === undefined || offset > length ? length : Number(offset);
  }
  if (offset !== undefined && offset >= length) {
    return -1;
  }
  const found = lastIndexOfPart(text, part, offset === undefined ? text.length : points.offsetOf(Number(offset)));
  return found < 0 ? -1 : points.indexOf(found);
}

export function substring(text: string, start: Int, end?: Int): CelResult {
  const points = new CodePoints(text);
  if (end !== undefined && start > end) {
    return fail(`invalid substring range. start: ${start}, end: ${end}`);
  }
  if (start < 0 || start > points.length) {
    return fail(`index out of range: ${start}`);
  }
  if (end !== undefined && (end < 0 || end > points.length)) {
    return fail(`index out of range: ${end}`);
  }
  return points.slice(Number(start), end === undefined ? undefined : Number(end));
}

/** Converts only ASCII letters. */
export function lowerAscii(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** Converts only ASCII letters. */
export function upperAscii(text: string): string {
  return text.replace(/[a-z]+/g, (letters) => letters.toUpperCase());
}

/** Unicode white space: unlike JavaScript's, with U+0085 and without U+FEFF. */
const LEADING_SPACE = /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;
const SPACE = /[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

export function trim(text: string): string {
  const start = LEADING_SPACE.exec(text)?.[0].length ?? 0;
  let end = text.length;
  while (end > start && SPACE.test(text.charAt(end - 1))) {
    end--;
  }
  return text.slice(start, end);
}

/** Replaces the first `count` occurrences, or all if it is negative. An empty string occurs around every code point. */
export function replace(text: string, old: string, by: string, count: Int = -1): CelResult {
  const limit = count < 0 ? Infinity : Number(count);
  if (limit === 0 || old === by) {
    return text;
  }
  const parts = old === '' ? splitAround(text, limit) : splitText(text, old, limit);
  const length = text.length + (parts.length - 1) * (by.length - old.length);
  return length > MAX_TEXT_LENGTH ? tooLong('replace', length) : parts.join(by);
}

/** Splits a string before each code point and at the end, at most `count` times. */
function splitAround(text: string, count: number): string[] {
  const parts = ['', ...Array.from(text)];
  if (count > parts.length) {
    return [...parts, ''];
  }
  const rest = parts.splice(count).join('');
  return [...parts, rest];
}

/** Splits a string at `count` separators at most; the last part is the rest. */
function splitText(text: string, separator: string, count: number): string[] {
  const parts = splitAtParts(text, separator);
  if (count >= parts.length) {
    return parts;
  }
  const rest = parts.splice(count).join(separator);
  return [...parts, rest];
}

/**
 * Splits a string at a separator into at most `count` parts, or all if it is negative; into code points if the
 * separator is empty.
 */
export function split(text: string, separator: string, count: Int = -1): CelResult {
  if (count === 0) {
    return [];
  }
  const limit = count < 0 ? Infinity : Number(count);
  if (separator !== '') {
    return splitText(text, separator, limit - 1);
  }
  const points = Array.from(text);
  if (points.length <= limit) {
    return points;
  }
  const rest = points.splice(limit - 1).join('');
  return [...points, rest];
}

export function join(parts: readonly unknown[], separator = ''): CelResult {
  let length = Math.max(0, parts.length - 1) * separator.length;
  for (const part of parts) {
    if (typeof part !== 'string') {
      return fail(`join: invalid input: ${String(part)}`);
    }
    length += part.length;
  }
  return length > MAX_TEXT_LENGTH ? tooLong('join', length) : parts.join(separator);
}

/** A CEL string literal. */
export function quote(text: string): string {
  const escape = (character: string): string => SHORT_ESCAPES.get(character) ?? character;
  // oxlint-disable-next-line no-control-regex -- these are what has to be escaped
  return `"${text.toWellFormed().replace(/[\u0007-\r\\"]/g, escape)}"`;
}

function tooLong(name: string, length: number): CelResult {
  return fail(`${name}: the result is too long: expected at most ${MAX_TEXT_LENGTH} characters, got ${length}`);
}
