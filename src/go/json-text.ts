import { isJsonObject } from '../values/index.ts';
import { compareStrings } from './compare-strings.ts';

/** Characters that `json.Marshal` escapes in addition to those of JSON, for JSON in HTML. */
const HTML_ESCAPED = /[<>&\u2028\u2029]/gu;

/** JSON as `json.Marshal` writes it: sorted keys, no spaces, `<`, `>` and `&` escaped. */
export function jsonText(value: unknown): string {
  // Fast path: most values are short strings and numbers.
  if (typeof value === 'number' || (typeof value === 'string' && value.search(HTML_ESCAPED) === -1)) {
    return JSON.stringify(value);
  }
  const text = JSON.stringify(value, (_key, part: unknown) => (isJsonObject(part) ? sorted(part) : part)) ?? 'null';
  return text.replaceAll(HTML_ESCAPED, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** The object with sorted keys, and without a prototype, so that `__proto__` stays a key. */
function sorted(object: Readonly<Record<string, unknown>>): object {
  const result = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(object).toSorted(compareStrings)) {
    result[key] = object[key];
  }
  return result;
}
