import { isJsonObject } from '../json.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { Schema } from '../schema.ts';

/**
 * Levels of nesting that are looked at. Kubernetes' own kinds have fewer than thirty; a schema that refers to itself would
 * let an object decide how deep a walk goes. What lies deeper is refused by {@link ObjectSchema.validate}.
 */
export const MAX_NESTING = 256;

/** A field of an object that somebody else wrote: never one that objects have by birth. */
export function fieldOf(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets a field as JSON.parse does: also `__proto__` becomes an ordinary one. */
export function setField(object: JsonObject, name: string, value: JsonValue): void {
  if (name === '__proto__') {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  } else {
    object[name] = value;
  }
}

/** The schema of a property that a schema names. */
export function propertyOf(schema: Schema, name: string): Schema | undefined {
  const { properties } = schema;
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/** The schema of entries that are no properties. */
export function additionalOf(schema: Schema): Schema | undefined {
  const { additionalProperties } = schema;
  return isJsonObject(additionalProperties) ? additionalProperties : undefined;
}

/** The schema of a field, by whichever of the two. */
export function schemaOfField(schema: Schema, name: string): Schema | undefined {
  return propertyOf(schema, name) ?? additionalOf(schema);
}
