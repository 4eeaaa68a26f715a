// API servers compare builtin kinds as Go structs, in which nested structs are present even when JSON omits them.
import { isJsonObject } from '../../resources/index.ts';
import type { JsonObject, JsonValue, Schema } from '../../resources/index.ts';
import { checkMergeDepth } from '../../resources/structured-merge/index.ts';

/** The zero value of a kind, with which a new object is compared. */
export function emptyStruct(schema: Schema, depth = 0): JsonObject {
  checkMergeDepth(depth);
  const required = new Set(schema.required);
  const entries = Object.entries(schema.properties ?? {}).flatMap(([name, property]): [string, JsonValue][] => {
    const { default: value } = property;
    if (isStruct(property)) {
      return [[name, emptyStruct(resolved(property), depth + 1)]];
    }
    return required.has(name) ? [[name, (value as JsonValue | undefined) ?? null]] : [];
  });
  return Object.fromEntries(entries);
}

/** Adds the missing nested structs to an object. Returns the object itself when none is missing. */
export function withStructs(object: JsonObject, schema: Schema): JsonObject {
  const result = shaped(object, schema, 0);
  return isJsonObject(result) ? result : object;
}

function shaped(value: JsonValue, schema: Schema, depth: number): JsonValue {
  checkMergeDepth(depth);
  const { items, properties, additionalProperties } = resolved(schema);
  if (Array.isArray(value)) {
    return items === undefined ? value : shapedList(value, items, depth);
  }
  if (!isJsonObject(value)) {
    return value;
  }
  const changes = new Map<string, JsonValue>();
  for (const [name, property] of Object.entries(properties ?? {})) {
    const before = Object.hasOwn(value, name) ? value[name] : undefined;
    const after = before ?? (isStruct(property) ? {} : undefined);
    const shape = after === undefined ? undefined : shaped(after, property, depth + 1);
    if (shape !== undefined && shape !== before) {
      changes.set(name, shape);
    }
  }
  if (isJsonObject(additionalProperties)) {
    for (const [name, one] of Object.entries(value)) {
      const shape = shaped(one, additionalProperties, depth + 1);
      if (shape !== one) {
        changes.set(name, shape);
      }
    }
  }
  return changes.size === 0 ? value : Object.fromEntries([...Object.entries(value), ...changes]);
}

function shapedList(values: JsonValue[], items: Schema, depth: number): JsonValue[] {
  const shapes = values.map((one) => shaped(one, items, depth + 1));
  return shapes.every((one, index) => one === values[index]) ? values : shapes;
}

/** In the OpenAPI documents of Kubernetes, only structs have `{}` as their default. */
function isStruct(schema: Schema): boolean {
  return isJsonObject(schema.default) && Object.keys(schema.default).length === 0;
}

function resolved(schema: Schema): Schema {
  const [only, ...others] = schema.allOf ?? [];
  return schema.properties === undefined && only !== undefined && others.length === 0 ? only : schema;
}
