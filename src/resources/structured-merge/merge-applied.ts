import { isJsonObject } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { Schema } from '../schema.ts';
import { checkTypes } from './check-types.ts';
import { checkMergeDepth, MergeError } from './merge-error.ts';
import { mergeTypeOf } from './merge-type.ts';
import type { MergeType } from './merge-type.ts';
import { mergeValues } from './merge-values.ts';

/**
 * Merges the value of an ApplyConfiguration of a MutatingAdmissionPolicy into an object, like server-side apply without
 * field owners. `applied` has the `apiVersion` and `kind` of the object. Values that JSON.parse does not create are
 * leaves. Throws MergeError `type-mismatch`, also when an atomic field is set, like API servers.
 */
export function mergeApplied(live: JsonObject, applied: JsonObject, schema: Schema): JsonObject {
  const type = mergeTypeOf(schema);
  try {
    checkTypes(applied, type, false);
  } catch (error) {
    throw error instanceof MergeError
      ? new MergeError(error.code, `failed to convert patch object to typed object: ${error.message}`, { cause: error })
      : error;
  }
  const atomic: string[] = [];
  findAtomic(applied, type, '', atomic, 0);
  if (atomic.length > 0) {
    const text = `invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomic.join(', ')}`;
    throw new MergeError('type-mismatch', text);
  }
  return mergeValues(live, applied, type);
}

/** Atomic fields that are set, except those in maps with any keys, as in API servers. */
function findAtomic(value: JsonValue, { map, list }: MergeType, path: string, atomic: string[], depth: number): void {
  checkMergeDepth(depth);
  if (isJsonObject(value) && map !== undefined) {
    if (map.isAtomic) {
      atomic.push(path);
    }
    for (const [name, one] of Object.entries(value)) {
      const type = map.isNamed(name) ? map.field(name) : undefined;
      if (type !== undefined) {
        findAtomic(one, type, `${path}.${name}`, atomic, depth + 1);
      }
    }
  } else if (Array.isArray(value) && list !== undefined) {
    if (list.isAtomic) {
      atomic.push(path);
    }
    for (const [index, one] of value.entries()) {
      findAtomic(one, list.element(), `${path}[${index}]`, atomic, depth + 1);
    }
  }
}
