/**
 * Freezes a JSON value and all that is in it. What is frozen already counts as frozen throughout, so that a part which two
 * objects share is gone through once.
 */
export function deepFreeze<T>(value: T): T {
  // No recursion: objects of others may be nested as deep as they fit into a request.
  const pending: unknown[] = [value];
  while (pending.length > 0) {
    const next = pending.pop();
    if (typeof next !== 'object' || next === null || Object.isFrozen(next)) {
      continue;
    }
    if (Array.isArray(next)) {
      for (const element of next) {
        if (typeof element === 'object' && element !== null) {
          pending.push(element);
        }
      }
    } else {
      for (const key of Object.keys(next)) {
        const child = (next as Record<string, unknown>)[key];
        if (typeof child === 'object' && child !== null) {
          pending.push(child);
        }
      }
    }
    Object.freeze(next);
  }
  return value;
}
