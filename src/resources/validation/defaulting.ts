// Defaulting by structural schemas, like apiextensions: disallowed nulls are removed first, so that they get the
// default as well.
import { isJsonObject, own, setOwn } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { Schema } from '../schema.ts';
import { additionalOf, MAX_NESTING, propertyOf, schemaOfField } from './schema-fields.ts';

/** Removes null fields that are not nullable and have no default. */
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

/**
 * Maximum length of JSON that defaults add to one object; a larger object would be rejected for its size. Prevents that
 * a default of a thousand characters for each of a hundred thousand elements exhausts memory.
 */
const MAX_DEFAULTED_CHARACTERS = 4 * 1024 * 1024;

/** The quotes, the colon and the comma of a field. */
const FIELD_PUNCTUATION = 4;

/** Sets missing fields, and nulls that are not nullable. Caches which fields of a schema have defaults. */
export class Defaults {
  readonly #fields = new WeakMap<Schema, readonly (readonly [string, Schema])[]>();
  readonly #sizes = new WeakMap<object, number>();
  #left = MAX_DEFAULTED_CHARACTERS;

  fill(value: JsonValue, schema: Schema): void {
    this.#left = MAX_DEFAULTED_CHARACTERS;
    this.#fill(value, schema, 0);
  }

  #fill(value: JsonValue, schema: Schema, depth: number): void {
    if (depth > MAX_NESTING || this.#left < 0) {
      return;
    }
    if (Array.isArray(value)) {
      this.#fillElements(value, schema.items, depth);
    } else if (isJsonObject(value)) {
      this.#fillFields(value, schema, depth);
    }
  }

  #fillElements(list: JsonValue[], items: Schema | undefined, depth: number): void {
    if (items === undefined) {
      return;
    }
    for (const [index, element] of list.entries()) {
      if (isMisplacedNull(element, items)) {
        list[index] = this.#defaultOf(items);
      }
      this.#fill(list[index] ?? null, items, depth + 1);
    }
  }

  #fillFields(object: JsonObject, schema: Schema, depth: number): void {
    for (const [field, property] of this.#fieldsWithDefaults(schema)) {
      const given = own(object, field);
      if (given === undefined || isMisplacedNull(given, property)) {
        this.#left -= field.length + FIELD_PUNCTUATION;
        setOwn(object, field, this.#defaultOf(property));
      }
    }
    const additional = additionalOf(schema);
    for (const field of Object.keys(object)) {
      const property = propertyOf(schema, field);
      if (property === undefined && additional !== undefined && isMisplacedNull(own(object, field), additional)) {
        setOwn(object, field, this.#defaultOf(additional));
      }
      const childSchema = property ?? additional;
      if (childSchema !== undefined) {
        this.#fill(own(object, field) ?? null, childSchema, depth + 1);
      }
    }
  }

  #fieldsWithDefaults(schema: Schema): readonly (readonly [string, Schema])[] {
    let known = this.#fields.get(schema);
    if (known === undefined) {
      known = Object.entries(schema.properties ?? {}).filter(([, property]) => property.default !== undefined);
      this.#fields.set(schema, known);
    }
    return known;
  }

  /** A copy of the default; null without one, or when the limit is exceeded. */
  #defaultOf({ default: value }: Schema): JsonValue {
    this.#left -= this.#sizeOf(value);
    return value === undefined || this.#left < 0 ? null : (structuredClone(value) as JsonValue);
  }

  /** Approximate length of JSON. */
  #sizeOf(value: unknown): number {
    if (typeof value !== 'object' || value === null) {
      return typeof value === 'string' ? value.length : 1;
    }
    let size = this.#sizes.get(value);
    if (size === undefined) {
      size = JSON.stringify(value).length;
      this.#sizes.set(value, size);
    }
    return size;
  }
}

function isMisplacedNull(value: JsonValue | undefined, schema: Schema | undefined): boolean {
  return value === null && schema !== undefined && schema.nullable !== true;
}
