/** Makes a JSON value read-only, all the way down. Its depth is bounded by {@link MAX_DEPTH} at the edge. */
export function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) {
      deepFreeze(member);
    }
  }
  return value;
}

/** A copy of a JSON value that may be changed. */
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
 * Objects may nest this deep. An API server's decoder gives up at 10,000 levels; recursion in JavaScript has room for about
 * that many frames in all, and no kind nests deeper than fifty.
 */
export const MAX_DEPTH = 500;

/** Whether a value nests deeper than {@link MAX_DEPTH}. */
export function isTooDeep(value: unknown, depth = 0): boolean {
  if (typeof value !== 'object' || value === null) {
    return false;
  }
  return depth >= MAX_DEPTH || Object.values(value).some((member) => isTooDeep(member, depth + 1));
}

/** Sets a field whatever its name is: `__proto__` is one like any other. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true });
  } else {
    target[key] = value;
  }
}
