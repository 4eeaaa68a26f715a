export { isJsonObject } from '../../values/index.ts';
export type { JsonObject, JsonValue } from '../../values/index.ts';

/**
 * Maximum nesting of input (reviews, guests' answers, settings). The deepest Kubernetes objects (CRDs) stay below 100,
 * and Go's decoder stops at 10,000. 1,000 recursive frames of the diff or of JSON.stringify need about 200 KiB
 * (measured), which fits the smallest stack.
 */
export const MAX_NESTING = 1_000;

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
