import { isJsonObject, type JsonObject, type JsonValue } from '../../values/index.ts';
import { checkDepth } from './patch-error.ts';

/**
 * Applies a JSON merge patch (RFC 7386): null removes a field, objects are merged, other values replace. As in API servers,
 * null fields of new objects are dropped, also within lists. The inputs are not changed. The result shares unchanged parts with
 * them, and is the object itself when nothing changes. Throws PatchError.
 */
export function applyMergePatch(object: JsonObject, patch: JsonObject): JsonObject {
  return merged(object, patch, 0);
}

function merged(object: JsonObject, patch: JsonObject, depth: number): JsonObject {
  checkDepth(depth);
  const result = new Map(Object.entries(object));
  let isChanged = false;
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      isChanged = result.delete(key) || isChanged;
      continue;
    }
    const before = result.get(key);
    const after = mergedValue(before, value, depth + 1);
    if (after !== before) {
      result.set(key, after);
      isChanged = true;
    }
  }
  return isChanged ? Object.fromEntries(result) : object;
}

function mergedValue(before: JsonValue | undefined, patch: JsonValue, depth: number): JsonValue {
  if (!isJsonObject(before)) {
    return withoutNulls(patch, depth);
  }
  return isJsonObject(patch) ? merged(before, patch, depth) : patch;
}

/** A value without null fields. */
function withoutNulls(value: JsonValue, depth: number): JsonValue {
  checkDepth(depth);
  if (Array.isArray(value)) {
    return value.map((element) => withoutNulls(element, depth + 1));
  }
  if (!isJsonObject(value)) {
    return value;
  }
  const entries = Object.entries(value).filter(([, one]) => one !== null);
  return Object.fromEntries(entries.map(([key, one]) => [key, withoutNulls(one, depth + 1)]));
}
