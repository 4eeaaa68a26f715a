import { setOwn } from '../../../values/index.ts';

/** A mutable copy of a JSON value. */
export function thaw<T>(value: T): T {
  if (Array.isArray(value)) {
    return value.map(thaw) as T;
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const copy: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    setOwn(copy, key, thaw(member));
  }
  return copy as T;
}

/**
 * Maximum nesting of objects, which bounds recursion. The decoder of API servers stops at 10,000 levels, for which the stack of
 * JavaScript would be too small. No kind needs more than 50.
 */
export const MAX_DEPTH = 500;

/** Whether a value nests deeper than {@link MAX_DEPTH}. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) {
    return false;
  }
  return depth >= MAX_DEPTH || Object.values(value).some((member) => isTooDeep(member, depth + 1));
}
