import type { CelValue } from '../value.ts';
import { MAX_INT, MIN_INT, doubleOf, toInt } from './number.ts';
import { setOwn } from './map.ts';

// JSON.parse does not distinguish the double `1.0` from the int `1`, and rounds integers beyond 2^53. Most documents
// have no such number: a scan decides whether the result of JSON.parse can be used.

const QUOTE = '"';
const QUOTE_CODE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/** Integers with at most this many digits are safe. */
const SAFE_DIGITS = 15;

/** A JSON number, matched at its start. */
const NUMBER = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y;

/**
 * Parses JSON to CEL values as API servers decode it: a number without fraction and exponent is an int if it fits 64
 * bits, every other number is a double.
 * @throws SyntaxError like JSON.parse
 */
export function parseJson(text: string): CelValue {
  const plain = JSON.parse(text) as CelValue;
  return hasSpecialNumber(text) ? parseExactly(text) : plain;
}

/** Whether a valid document has a number that JSON.parse does not represent correctly. */
function hasSpecialNumber(text: string): boolean {
  let index = 0;
  while (index < text.length) {
    const code = text.charCodeAt(index);
    if (code === QUOTE_CODE) {
      index = endOfString(text, index);
    } else if (code === MINUS || (code >= DIGIT_0 && code <= DIGIT_9)) {
      const token = numberAt(text, index);
      if (isSpecial(token)) {
        return true;
      }
      index += token.length;
    } else {
      index++;
    }
  }
  return false;
}

/** End of the string that starts at a quote. Scans by character, because most strings are short. */
function endOfString(text: string, quote: number): number {
  let index = quote + 1;
  for (let code = text.charCodeAt(index); code !== QUOTE_CODE; code = text.charCodeAt(index)) {
    index += code === BACKSLASH ? 2 : 1;
  }
  return index + 1;
}

function numberAt(text: string, index: number): string {
  NUMBER.lastIndex = index;
  return NUMBER.exec(text)?.[0] ?? '';
}

function isSpecial(token: string): boolean {
  if (isIntToken(token)) {
    return token.length > SAFE_DIGITS || token === '-0';
  }
  return Number.isInteger(Number(token));
}

function isIntToken(token: string): boolean {
  return !/[.eE]/.test(token);
}

function numberOf(token: string): CelValue {
  if (!isIntToken(token)) {
    return doubleOf(Number(token));
  }
  if (token.length <= SAFE_DIGITS) {
    // An int is never -0.
    return Number(token) + 0;
  }
  // A number with more digits than 64 bits becomes a double, whose conversion is not quadratic.
  const exact = token.length <= 20 ? BigInt(token) : undefined;
  return exact === undefined || exact > MAX_INT || exact < MIN_INT ? doubleOf(Number(token)) : toInt(exact);
}

/** An open list or map. */
interface Open {
  readonly container: CelValue[] | Record<string, CelValue>;
  /** The key of the next value in a map. */
  key: string | undefined;
}

/** Parses valid JSON with exact numbers. Not recursive, so documents may be nested to any depth. */
function parseExactly(text: string): CelValue {
  const root: CelValue[] = [];
  const open: Open[] = [{ container: root, key: undefined }];
  let index = 0;
  while (index < text.length) {
    index = readToken(text, index, open);
  }
  return root[0] ?? null;
}

function readToken(text: string, index: number, open: Open[]): number {
  const top = open.at(-1);
  if (top === undefined) {
    return text.length;
  }
  switch (text.charAt(index)) {
    case '{':
    case '[': {
      const container = text.charAt(index) === '{' ? {} : [];
      append(top, container);
      open.push({ container, key: undefined });
      return index + 1;
    }
    case '}':
    case ']':
      open.pop();
      return index + 1;
    case QUOTE: {
      const end = endOfString(text, index);
      appendString(top, JSON.parse(text.slice(index, end)) as string);
      return end;
    }
    case 't':
      append(top, true);
      return index + 4;
    case 'f':
      append(top, false);
      return index + 5;
    case 'n':
      append(top, null);
      return index + 4;
    default: {
      const token = numberAt(text, index);
      if (token !== '') {
        append(top, numberOf(token));
      }
      return index + Math.max(1, token.length);
    }
  }
}

function appendString(top: Open, value: string): void {
  if (!Array.isArray(top.container) && top.key === undefined) {
    top.key = value;
  } else {
    append(top, value);
  }
}

function append(top: Open, value: CelValue): void {
  if (Array.isArray(top.container)) {
    top.container.push(value);
  } else {
    setOwn(top.container, top.key ?? '', value);
    top.key = undefined;
  }
}
