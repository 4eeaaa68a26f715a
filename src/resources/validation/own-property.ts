import { isJsonObject } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { Schema } from '../schema.ts';

/**
 * Maximum nesting that is processed. Kubernetes' own kinds have less than thirty levels; a recursive schema would let
 * an object determine the depth. {@link ObjectSchema.validate} rejects deeper objects.
 */
export const MAX_NESTING = 256;

/** An own property of an untrusted object, never one of Object.prototype. */
export function fieldOf(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets a field like JSON.parse: also `__proto__` becomes an own property. */
export function setField(object: JsonObject, name: string, value: JsonValue): void {
  if (name === '__proto__') {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  } else {
    object[name] = value;
  }
}

/** The schema of a named property. */
export function propertyOf(schema: Schema, name: string): Schema | undefined {
  const { properties } = schema;
  return properties !== undefined && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/** The schema of additional properties. */
export function additionalOf(schema: Schema): Schema | undefined {
  const { additionalProperties } = schema;
  return isJsonObject(additionalProperties) ? additionalProperties : undefined;
}

/** The schema of a field: a named or an additional property. */
export function schemaOfField(schema: Schema, name: string): Schema | undefined {
  return propertyOf(schema, name) ?? additionalOf(schema);
}
