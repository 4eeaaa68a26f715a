import type { JsonObject, JsonValue } from '../resources/index.ts';

export type { JsonObject, JsonValue };

/**
 * The deepest nesting that is accepted from outside (reviews, guests' answers, settings).
 * The deepest Kubernetes objects (schemas of schemas in CRDs) stay below 100 and Go's decoder stops at 10,000;
 * 1,000 recursive frames of the differ or of JSON.stringify fit the smallest stack (measured: they need about 200 KiB).
 */
export const MAX_NESTING = 1_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Index just behind the string that opens at `open`, or the text's length when it never ends. */
export function endOfString(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      return at + 1;
    }
    if (code === BACKSLASH) {
      at++;
    }
  }
  return text.length;
}

/** Whether the text opens more than `limit` brackets at once. One pass, no recursion; any text, JSON or not. */
export function isNestedDeeper(text: string, limit: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at) - 1;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > limit) {
        return true;
      }
    } else if (code === 0x7d || code === 0x5d) {
      depth--;
    }
  }
  return false;
}

/** JSON with the keys of every object in code unit order: equal values have equal texts, so that it can be hashed. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(canonicalJson).join(',')}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
}
