import { isJsonObject } from '../../values/index.ts';
import type { Schema } from '../schema.ts';

/**
 * Maximum nesting that is processed. Kubernetes' own kinds have less than thirty levels; a recursive schema would let
 * an object determine the depth. {@link ObjectSchema.validate} rejects deeper objects.
 */
export const MAX_NESTING = 256;

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
