import type { CelValue } from '../value.ts';
import { MAX_INT, MIN_INT, doubleOf, toInt } from './number.ts';
import { setOwn } from './map.ts';

// Numbers are what JSON.parse does not keep apart: `1.0` is a double and `1` an int, and ints beyond 2^53 lose digits.
// Most documents have no such number, so that a quick look decides whether JSON.parse gives what CEL needs.

const QUOTE = '"';
const QUOTE_CODE = 0x22;
const BACKSLASH = 0x5c;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/** Integers of up to so many digits are safe. */
const SAFE_DIGITS = 15;

/** Numbers as JSON has them, for reading one from where it starts. */
const NUMBER = /-?\d+(\.\d+)?([eE][+-]?\d+)?/y;

/**
 * Parses JSON to values of CEL as API servers decode it: what is written without fraction and exponent is an int if it
 * fits into 64 bits, every other number is a double.
 * @throws SyntaxError as JSON.parse does
 */
export function parseJson(text: string): CelValue {
  const plain = JSON.parse(text) as CelValue;
  return hasSpecialNumber(text) ? parseExactly(text) : plain;
}

/** Whether a document, known to be JSON, has a number that JSON.parse does not give as CEL needs it. */
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

/** Where the string that begins at a quote has ended. Character by character: most strings are short. */
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
    // Minus zero is no int.
    return Number(token) + 0;
  }
  // Digits beyond those of 64 bits make a double, whose conversion does not take the square of their number.
  const exact = token.length <= 20 ? BigInt(token) : undefined;
  return exact === undefined || exact > MAX_INT || exact < MIN_INT ? doubleOf(Number(token)) : toInt(exact);
}

/** A list or map being read. */
interface Open {
  readonly container: CelValue[] | Record<string, CelValue>;
  /** Of the value that comes next, in a map. */
  key: string | undefined;
}

/** Parses what is known to be JSON, keeping numbers exact. Not recursive: documents may be nested as deep as they like. */
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
