// JSON.parse of V8 12.8 and later misreads some keys that are written with an escape sequence: once an object had the key
// `ab\`, the key `ab"` in a later text can be read as `ab\` (https://github.com/nodejs/node/issues/63785). The author
// of the first text could change what a policy reads in the second, so the result of JSON.parse is not used for texts with
// escaped keys. A library that calls JSON.parse itself, as @sigstore/verify does for entries of logs, must look for no keys with
// a backslash: only such keys appear by mistake.
import { endOfJsonString } from './json-text.ts';
import { setOwn } from './set-own.ts';

const COLON = 0x3a;

/** A JSON number, matched at its start. */
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

/**
 * JSON.parse that reads every key correctly. The only caller of JSON.parse for untrusted text.
 * @throws SyntaxError like JSON.parse
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  return hasEscapedKey(text) ? buildJson(text, Number) : value;
}

/** A text without as many digits in a row has no integer that a number would round. */
const ROUNDED_DIGITS = /\d{16}/;
/** Digits of the largest 64-bit integer. Larger ones are floating-point numbers in API servers, too. */
const MAX_INT_DIGITS = 20;

/**
 * {@link parseJson} with a bigint for each integer that a number would round.
 * @throws SyntaxError like JSON.parse
 */
export function parseExactJson(text: string): unknown {
  const value = parseJson(text);
  return ROUNDED_DIGITS.test(text) ? buildJson(text, exactNumber) : value;
}

function exactNumber(token: string): number | bigint {
  const rounded = Number(token);
  const isInteger = /^-?\d+$/.test(token) && token.length <= MAX_INT_DIGITS;
  return isInteger && !Number.isSafeInteger(rounded) ? BigInt(token) : rounded;
}

/**
 * JSON.stringify that writes a bigint as a number.
 * @throws TypeError when the value contains itself
 */
export function exactJson(value: unknown): string {
  let isPlain = true;
  const text = JSON.stringify(value, (_key, member: unknown) => {
    isPlain &&= typeof member !== 'bigint';
    return typeof member === 'bigint' ? 0 : member;
  });
  return isPlain ? text : exactText(value);
}

function exactText(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(exactText).join(',')}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${exactText(member)}`).join(',')}}`;
  }
  return typeof value === 'bigint' ? String(value) : (JSON.stringify(value) ?? 'null');
}

/** Whether a key of a valid text is written with an escape sequence. */
function hasEscapedKey(text: string): boolean {
  // A text without a backslash, as most are, is searched by native code only.
  let backslash = text.indexOf('\\');
  let index = 0;
  while (backslash !== -1) {
    const quote = text.indexOf('"', index);
    index = endOfJsonString(text, quote);
    if (backslash < index) {
      if (isFollowedByColon(text, index)) {
        return true;
      }
      backslash = text.indexOf('\\', index);
    }
  }
  return false;
}

function isFollowedByColon(text: string, index: number): boolean {
  let next = index;
  // The space between tokens has codes up to 0x20.
  while (text.charCodeAt(next) <= 0x20) {
    next++;
  }
  return text.charCodeAt(next) === COLON;
}

/** The number token at `index`; empty if there is none. */
export function jsonNumberAt(text: string, index: number): string {
  NUMBER.lastIndex = index;
  return NUMBER.exec(text)?.[0] ?? '';
}

/** An open list or object. */
interface Open {
  readonly container: unknown[] | Record<string, unknown>;
  /** The key of the next value in an object. */
  key: string | undefined;
}

/** Builds the value of a valid text, with numbers from `numberOf`. Not recursive: texts may be nested to any depth. */
export function buildJson(text: string, numberOf: (token: string) => unknown): unknown {
  const root: unknown[] = [];
  const open: Open[] = [{ container: root, key: undefined }];
  let index = 0;
  while (index < text.length) {
    index = readToken(text, index, open, numberOf);
  }
  return root[0];
}

/** Reads the token at `index`, and returns the start of the next one. */
function readToken(text: string, index: number, open: Open[], numberOf: (token: string) => unknown): number {
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
    case '"': {
      const end = endOfJsonString(text, index);
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
      const token = jsonNumberAt(text, index);
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

function append(top: Open, value: unknown): void {
  if (Array.isArray(top.container)) {
    top.container.push(value);
  } else {
    setOwn(top.container, top.key ?? '', value);
    top.key = undefined;
  }
}
