// Lists of type `set` and `map` have no duplicates (apiextensions, `schema/listtype`).
import { jsonText } from '../../go/index.ts';
import { duplicate, invalid } from '../field-error.ts';
import type { FieldError } from '../field-error.ts';
import { isJsonObject, own } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';
import type { Schema } from '../schema.ts';
import { pathOfField } from './field-path.ts';
import { additionalOf, MAX_NESTING, propertyOf } from './schema-fields.ts';

/** Duplicates in all lists of a value. */
export function listErrors(value: JsonValue, schema: Schema, path: string, depth = 0): FieldError[] {
  if (depth > MAX_NESTING) {
    return [];
  }
  if (Array.isArray(value)) {
    const { items } = schema;
    const inner =
      items === undefined ? [] : value.flatMap((one, at) => listErrors(one, items, `${path}[${at}]`, depth + 1));
    return [...ownErrors(value, schema, path), ...inner];
  }
  return isJsonObject(value) ? fieldErrors(value, schema, path, depth) : [];
}

function fieldErrors(object: JsonObject, schema: Schema, path: string, depth: number): FieldError[] {
  const additional = additionalOf(schema);
  return Object.keys(object).flatMap((name) => {
    const property = propertyOf(schema, name);
    const child = own(object, name) ?? null;
    if (property !== undefined) {
      return listErrors(child, property, pathOfField(path, name), depth + 1);
    }
    return additional === undefined ? [] : listErrors(child, additional, `${path}[${name}]`, depth + 1);
  });
}

function ownErrors(list: readonly JsonValue[], schema: Schema, path: string): FieldError[] {
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return duplicatesIn(list).map((at) => duplicate(`${path}[${at}]`, list[at]));
    case 'map':
      return mapErrors(list, schema['x-kubernetes-list-map-keys'] ?? [], path);
    default:
      return [];
  }
}

function mapErrors(list: readonly JsonValue[], keys: readonly string[], path: string): FieldError[] {
  const other = list.findIndex((item) => item !== null && !isJsonObject(item));
  if (other !== -1) {
    return [invalid(`${path}[${other}]`, list[other], 'must be an object for an array of list-type map')];
  }
  const found = list.map((item) => keysOf(isJsonObject(item) ? item : {}, keys));
  return duplicatesIn(found).map((at) => duplicate(`${path}[${at}]`, found[at]));
}

/** The key fields of an element. */
function keysOf(item: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(keys.filter((key) => Object.hasOwn(item, key)).map((key) => [key, item[key] ?? null]));
}

/** Indices of repeated elements, each element once. */
function duplicatesIn(list: readonly JsonValue[]): readonly number[] {
  const times = new Map<string, number>();
  const found: number[] = [];
  for (const [at, element] of list.entries()) {
    const key = jsonText(element);
    const before = times.get(key) ?? 0;
    times.set(key, before + 1);
    if (before === 1) {
      found.push(at);
    }
  }
  return found;
}
