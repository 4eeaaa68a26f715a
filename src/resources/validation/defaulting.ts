// Defaulting by structural schemas, as apiextensions does it: nulls that a schema does not allow go first, so that they get the
// default too.
import { isJsonObject } from '../json.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { Schema } from '../schema.ts';
import { additionalOf, fieldOf, MAX_NESTING, propertyOf, schemaOfField, setField } from './own-property.ts';

/** Removes fields that are null, may not be, and have no default. */
export function removeNulls(value: JsonValue, schema: Schema | undefined, depth = 0): void {
  if (depth > MAX_NESTING || schema === undefined) {
    return;
  }
  if (Array.isArray(value)) {
    for (const element of value) {
      removeNulls(element, schema.items, depth + 1);
    }
    return;
  }
  if (!isJsonObject(value)) {
    return;
  }
  for (const [field, child] of Object.entries(value)) {
    const childSchema = schemaOfField(schema, field);
    if (isMisplacedNull(child, childSchema) && childSchema?.default === undefined) {
      delete value[field];
    } else {
      removeNulls(child, childSchema, depth + 1);
    }
  }
}

/** Fills in what is not there, and nulls that may not be. */
export function fillDefaults(value: JsonValue, schema: Schema, depth = 0): void {
  if (depth > MAX_NESTING) {
    return;
  }
  if (Array.isArray(value)) {
    fillElements(value, schema.items, depth);
  } else if (isJsonObject(value)) {
    fillFields(value, schema, depth);
  }
}

function fillElements(list: JsonValue[], items: Schema | undefined, depth: number): void {
  if (items === undefined) {
    return;
  }
  for (const [index, element] of list.entries()) {
    if (isMisplacedNull(element, items)) {
      list[index] = copyOf(items.default);
    }
    fillDefaults(list[index] ?? null, items, depth + 1);
  }
}

function fillFields(object: JsonObject, schema: Schema, depth: number): void {
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    if (property.default !== undefined) {
      const given = fieldOf(object, field);
      if (given === undefined || isMisplacedNull(given, property)) {
        setField(object, field, copyOf(property.default));
      }
    }
  }
  const additional = additionalOf(schema);
  for (const field of Object.keys(object)) {
    const property = propertyOf(schema, field);
    if (property === undefined && additional !== undefined && isMisplacedNull(fieldOf(object, field), additional)) {
      setField(object, field, copyOf(additional.default));
    }
    const childSchema = property ?? additional;
    if (childSchema !== undefined) {
      fillDefaults(fieldOf(object, field) ?? null, childSchema, depth + 1);
    }
  }
}

function isMisplacedNull(value: JsonValue | undefined, schema: Schema | undefined): boolean {
  return value === null && schema !== undefined && schema.nullable !== true;
}

function copyOf(value: unknown): JsonValue {
  return value === undefined ? null : (structuredClone(value) as JsonValue);
}
