import { applyJsonPatch, PatchError } from '../../resources/index.ts';
import { parseJson } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../values/json-text.ts';

/** Applies a patch of a verdict to an object; undefined when it does not apply. */
export function applyPatch(patch: string, object: JsonObject): JsonValue | undefined {
  try {
    const operations = parseJson(patch) as readonly JsonValue[];
    return applyJsonPatch(object, operations);
  } catch (error) {
    if (error instanceof PatchError) {
      return undefined;
    }
    throw error;
  }
}
