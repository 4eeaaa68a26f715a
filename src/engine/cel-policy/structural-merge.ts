import type { JsonObject, JsonValue } from '../json-text.ts';
import { MutationValueError } from './mutation-structs.ts';

/**
 * Fields of Kubernetes' own kinds that API servers merge as a whole, and that ApplyConfiguration must therefore not set:
 * selectors, references and the like. What a custom resource declares so is known by its schema only.
 */
const ATOMIC_FIELDS = new Set([
  'claimRef',
  'configMapKeyRef',
  'fieldRef',
  'fileKeyRef',
  'labelSelector',
  'namespaceSelector',
  'nodeSelector',
  'nodeSelectorTerms',
  'objectSelector',
  'podSelector',
  'resourceFieldRef',
  'secretKeyRef',
  'secretRef',
  'selector',
  'targetRef',
]);

/**
 * Merges what an ApplyConfiguration constructed into an object, where that takes no schema: scalars replace, mappings
 * are merged field by field. Lists are merged by keys that only a schema knows, so that they are refused.
 * Throws {@link MutationValueError}.
 */
export function mergeObject(object: JsonObject, patch: JsonObject): JsonObject {
  const refused: string[] = [];
  collectRefused(patch, '', refused);
  if (refused.length > 0) {
    throw new MutationValueError(
      `error applying patch: lists, and fields that are merged as a whole, can be set with ApplyConfiguration on kinds of Kubernetes itself only, whose schema is known here: ${refused.join(', ')}. Use a mutation with patchType JSONPatch for them.`,
    );
  }
  return merged(object, patch);
}

function collectRefused(patch: JsonObject, path: string, refused: string[]): void {
  for (const [key, value] of Object.entries(patch)) {
    const at = `${path}.${key}`;
    if (Array.isArray(value) || (ATOMIC_FIELDS.has(key) && isMapping(value))) {
      refused.push(at);
    } else if (isMapping(value)) {
      collectRefused(value, at, refused);
    }
  }
}

function merged(object: JsonObject, patch: JsonObject): JsonObject {
  const result = new Map<string, JsonValue>(Object.entries(object));
  for (const [key, value] of Object.entries(patch)) {
    const before = result.get(key);
    result.set(key, isMapping(value) ? merged(isMapping(before) ? before : {}, value) : value);
  }
  return Object.fromEntries(result);
}

/** Numbers that JSON.parse does not know are objects, too, but leaves. */
function isMapping(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
