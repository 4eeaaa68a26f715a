import { isJsonObject } from './json-text.ts';
import type { JsonObject, JsonValue } from './json-text.ts';

/** One operation of RFC 6902. The differ needs only these three. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: JsonValue }
  | { readonly op: 'remove'; readonly path: string };

/**
 * Below this depth a value that differs is replaced whole. Lists are compared before they are walked, so the work is
 * bounded by this number times the object's size, whatever a guest makes of it. Pod specs end at about 12.
 */
const MAX_DIFF_DEPTH = 64;

/**
 * The RFC 6902 operations that turn `before` into `after`; none when they are equal. Applying them in order is exact.
 * Lists are compared after their common head and tail are cut off: appended, inserted and removed elements (what
 * mutating policies do) give short patches, in linear time; there is no search for moved elements.
 */
export function diff(before: JsonValue, after: JsonValue): PatchOperation[] {
  const operations: PatchOperation[] = [];
  diffValue(before, after, '', 0, operations);
  return operations;
}

/** Whether two JSON values are equal; the order of keys does not count. */
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
  // From the end, so that the indices of what is still to be removed stay valid.
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
