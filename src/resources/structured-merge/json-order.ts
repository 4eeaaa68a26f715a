// Equality and order of JSON values in structured-merge-diff.
import { compareStrings } from '../../go/index.ts';
import { isJsonObject } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import { checkMergeDepth } from './merge-error.ts';

/** Deep equality; the order of keys does not count. */
export function isSameJson(left: JsonValue, right: JsonValue, depth = 0): boolean {
  if (left === right) {
    return true;
  }
  checkMergeDepth(depth);
  if (Array.isArray(left)) {
    return (
      Array.isArray(right) &&
      left.length === right.length &&
      left.every((one, index) => isSameJson(one, right[index] ?? null, depth + 1))
    );
  }
  if (!isJsonObject(left) || !isJsonObject(right)) {
    return false;
  }
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && isSameJson(left[key] ?? null, right[key] ?? null, depth + 1))
  );
}

/** Order by type (numbers, texts, booleans, lists, objects, null), then by value. */
export function compareJson(left: JsonValue, right: JsonValue, depth = 0): number {
  checkMergeDepth(depth);
  const ranks = rankOf(left) - rankOf(right);
  if (ranks !== 0) {
    return ranks;
  }
  if (typeof left === 'string' && typeof right === 'string') {
    return compareStrings(left, right);
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    return compareLists(left, right, (a, b) => compareJson(a, b, depth + 1));
  }
  if (isJsonObject(left) && isJsonObject(right)) {
    return compareLists(
      entriesOf(left),
      entriesOf(right),
      ([a, one], [b, other]) => compareStrings(a, b) || compareJson(one, other, depth + 1),
    );
  }
  return Number(left) - Number(right);
}

export function compareLists<T>(left: readonly T[], right: readonly T[], compare: (a: T, b: T) => number): number {
  for (const [index, one] of left.entries()) {
    const other = right[index];
    if (index >= right.length || other === undefined) {
      return 1;
    }
    const order = compare(one, other);
    if (order !== 0) {
      return order;
    }
  }
  return left.length - right.length;
}

function entriesOf(object: JsonObject): readonly (readonly [string, JsonValue])[] {
  return Object.entries(object).toSorted(([a], [b]) => compareStrings(a, b));
}

function rankOf(value: JsonValue): number {
  switch (typeof value) {
    case 'number':
      return 0;
    case 'string':
      return 1;
    case 'boolean':
      return 2;
    default:
      return value === null ? 5 : Array.isArray(value) ? 3 : 4;
  }
}
