import { compareStrings } from './compare-strings.ts';
import { formatFloat } from './float.ts';
import { GoFloat, isGoList, isGoObject, isIntegerNumber, JsonNumber } from './value.ts';
import type { GoObject, GoValue } from './value.ts';

/** A number of decoded JSON as `%v` prints it: `1000000`, `1.2345675e+06`. */
export function numberText(value: number): string {
  return isIntegerNumber(value) ? String(value) : formatFloat(value, 'g');
}

/**
 * Deeper values are printed as `...`, so that recursion cannot exhaust the stack; Kubernetes objects have less than 100
 * levels.
 */
const MAX_DEPTH = 1000;

/** A value as `%v` prints it: `map[a:1 b:[x y]]`. */
export function valueText(value: GoValue, depth = 0): string {
  if (value === null || value === undefined) {
    return '<nil>';
  }
  if (typeof value === 'number') {
    return numberText(value);
  }
  if (value instanceof GoFloat) {
    return formatFloat(value.float, 'g');
  }
  if (value instanceof JsonNumber) {
    return value.text;
  }
  if (isGoList(value)) {
    return depth > MAX_DEPTH ? '...' : `[${value.map((item) => valueText(item, depth + 1)).join(' ')}]`;
  }
  return isGoObject(value) ? objectText(value, depth) : String(value);
}

function objectText(object: GoObject, depth: number): string {
  if (depth > MAX_DEPTH) {
    return '...';
  }
  return `map[${sortedEntries(object)
    .map(([key, item]) => `${key}:${valueText(item, depth + 1)}`)
    .join(' ')}]`;
}

/** The entries in the order of their keys, as Go prints maps and ranges over them in templates. */
export function sortedEntries(object: GoObject): (readonly [string, GoValue])[] {
  return Object.entries(object).sort(([a], [b]) => compareStrings(a, b));
}
