// Values as Go prints them, for messages that have to be those of API servers.
import { goQuote } from '../cel/index.ts';
import { isJsonObject } from './json.ts';

/** Text in double quotes (`%q`, strconv.Quote). */
export const quoteText = goQuote;

/** A number as `%v` prints it: with an exponent below 1e-4 and from 1e21 on, which has two digits at least. */
export function numberText(value: number): string {
  const small = value !== 0 && Math.abs(value) < 1e-4;
  const text = small ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/u, 'e$10$2');
}

/** What `json.Marshal` escapes beyond what JSON does. */
const HTML_ESCAPED = /[<>&\u2028\u2029]/gu;

/** JSON as `json.Marshal` writes it: keys in order, no space, and nothing that HTML would read as markup. */
export function jsonText(value: unknown): string {
  // Most values are short texts and numbers, and there may be very many of them.
  if (typeof value === 'number' || (typeof value === 'string' && value.search(HTML_ESCAPED) === -1)) {
    return JSON.stringify(value);
  }
  const text = JSON.stringify(value, (_key, part: unknown) => (isJsonObject(part) ? sorted(part) : part)) ?? 'null';
  return text.replaceAll(HTML_ESCAPED, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** An object with its keys in the order of their bytes. Without a prototype, so that `__proto__` stays a key. */
function sorted(object: Readonly<Record<string, unknown>>): object {
  const result = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(object).toSorted(compareBytes)) {
    result[key] = object[key];
  }
  return result;
}

/** The order of Go's strings: by their UTF-8, which is that of code points. */
export function compareBytes(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at++) {
    const a = left.charCodeAt(at);
    const b = right.charCodeAt(at);
    if (a !== b) {
      // Surrogates stand for code points behind all others.
      return isSurrogate(a) === isSurrogate(b) ? a - b : isSurrogate(a) ? 1 : -1;
    }
  }
  return left.length - right.length;
}

function isSurrogate(code: number): boolean {
  return code >= 0xd8_00 && code <= 0xdf_ff;
}
