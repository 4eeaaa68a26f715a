import type { JsonObject, JsonValue } from '../values/json-text.ts';
import { MutationValueError } from './mutation-structs.ts';

/**
 * Atomic fields of Kubernetes' own kinds (selectors, references and the like), which ApplyConfiguration must not set.
 * Atomic fields of custom resources are known only from their schemas.
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
 * Merges the value of an ApplyConfiguration into an object without a schema: scalars replace, mappings are merged field
 * by field. Lists are rejected, because their merge keys are in the schema. Throws {@link MutationValueError}.
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

/** Numbers of CEL are objects as well, but leaves. */
function isMapping(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
