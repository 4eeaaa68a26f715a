export { isJsonObject } from '../values/index.ts';
export type { JsonObject, JsonValue } from '../values/index.ts';

/**
 * Maximum nesting of input (reviews, guests' answers, settings). The deepest Kubernetes objects (CRDs) stay below 100,
 * and Go's decoder stops at 10,000. 1,000 recursive frames of the diff or of JSON.stringify need about 200 KiB
 * (measured), which fits the smallest stack.
 */
export const MAX_NESTING = 1_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Index after the string that opens at `open`, or the text's length when the string does not end. */
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

/** Whether more than `limit` brackets are open at once. One pass without recursion; the text need not be JSON. */
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

/** JSON with sorted keys, so that equal values have equal texts and hashes. */
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
