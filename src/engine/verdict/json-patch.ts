import { isJsonObject } from '../values/json-text.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';

/** An operation of RFC 6902, of the three that the diff produces. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly path: string };

/**
 * A value below this depth is replaced as a whole. Lists are compared before they are diffed, so this limits the work
 * to a multiple of the object's size, even for hostile guests. Pod specs end at about 12.
 */
const MAX_DIFF_DEPTH = 64;

/**
 * The RFC 6902 operations that turn `before` into `after`, to be applied in order; none when they are equal. Lists are
 * diffed after their common start and end are cut off. That gives short patches in linear time for what mutating
 * policies do (append, insert, remove); moved elements are not detected.
 */
export function diff(before: JsonValue, after: JsonValue): PatchOperation[] {
  const operations: PatchOperation[] = [];
  diffValue(before, after, '', 0, operations);
  return operations;
}

/** Deep equality of two JSON values; the order of keys does not count. */
export function isEqual(a: JsonValue, b: JsonValue): boolean {
  if (a === b) {
    return true;
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return false;
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((element, index) => isEqual(element, b[index] ?? null));
  }
  if (Array.isArray(b)) {
    return false;
  }
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key] ?? null, b[key] ?? null))
  );
}

function diffValue(
  before: JsonValue,
  after: JsonValue,
  path: string,
  depth: number,
  operations: PatchOperation[],
): void {
  if (before === after) {
    return;
  }
  if (depth > MAX_DIFF_DEPTH) {
    if (!isEqual(before, after)) {
      operations.push({ op: 'replace', path, value: after });
    }
  } else if (Array.isArray(before) && Array.isArray(after)) {
    diffList(before, after, path, depth + 1, operations);
  } else if (isJsonObject(before) && isJsonObject(after)) {
    diffObject(before, after, path, depth + 1, operations);
  } else {
    operations.push({ op: 'replace', path, value: after });
  }
}

function diffObject(
  before: JsonObject,
  after: JsonObject,
  path: string,
  depth: number,
  operations: PatchOperation[],
): void {
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) {
      operations.push({ op: 'remove', path: `${path}/${escapeKey(key)}` });
    }
  }
  for (const key of Object.keys(after)) {
    const value = after[key] ?? null;
    if (!Object.hasOwn(before, key)) {
      operations.push({ op: 'add', path: `${path}/${escapeKey(key)}`, value });
    } else if (before[key] !== value) {
      diffValue(before[key] ?? null, value, `${path}/${escapeKey(key)}`, depth, operations);
    }
  }
}

function diffList(
  before: JsonValue[],
  after: JsonValue[],
  path: string,
  depth: number,
  operations: PatchOperation[],
): void {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && isEqual(before[head] ?? null, after[head] ?? null)) {
    head++;
  }
  let tail = 0;
  while (tail < shorter - head && isEqual(before.at(-1 - tail) ?? null, after.at(-1 - tail) ?? null)) {
    tail++;
  }
  const beforeEnd = before.length - tail;
  const afterEnd = after.length - tail;
  const common = Math.min(beforeEnd, afterEnd);
  // From the end, so that the indices of the remaining elements stay valid.
  for (let index = beforeEnd - 1; index >= common; index--) {
    operations.push({ op: 'remove', path: `${path}/${index}` });
  }
  for (let index = head; index < common; index++) {
    diffValue(before[index] ?? null, after[index] ?? null, `${path}/${index}`, depth, operations);
  }
  for (let index = common; index < afterEnd; index++) {
    operations.push({ op: 'add', path: `${path}/${index}`, value: after[index] ?? null });
  }
}

function escapeKey(key: string): string {
  return key.includes('~') || key.includes('/') ? key.replaceAll('~', '~0').replaceAll('/', '~1') : key;
}
