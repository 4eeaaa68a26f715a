/** Levels that are gone into by recursion, which takes half the time of a list of what is left; no Kubernetes kind has more. */
const MAX_RECURSION = 64;

/**
 * Freezes a JSON value and all that is in it. What is frozen already counts as frozen throughout, so that a part which two
 * objects share is gone through once.
 */
export function deepFreeze<T>(value: T): T {
  if (isObject(value)) {
    // Objects of others may be nested as deep as they fit into a request.
    const deeper: object[] = [];
    for (let next: object | undefined = value; next !== undefined; next = deeper.pop()) {
      freeze(next, 0, deeper);
    }
  }
  return value;
}

function freeze(value: object, depth: number, deeper: object[]): void {
  if (Object.isFrozen(value)) {
    return;
  }
  if (depth === MAX_RECURSION) {
    deeper.push(value);
    return;
  }
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const child: unknown = value[index];
      if (isObject(child)) {
        freeze(child, depth + 1, deeper);
      }
    }
  } else {
    // JSON values inherit nothing that for-in would show; asking for each key costs a third of the time.
    for (const key in value) {
      const child = (value as Record<string, unknown>)[key];
      if (isObject(child)) {
        freeze(child, depth + 1, deeper);
      }
    }
  }
  Object.freeze(value);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
