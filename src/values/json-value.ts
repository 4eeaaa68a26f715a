/** A JSON value, as from JSON.parse. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Types an object that consists of JSON values, such as one of an API server, as JSON. The result must not be changed. */
export function asJson(object: object): JsonObject {
  return object as JsonObject;
}

/** An own property, never one of Object.prototype. */
export function own(object: JsonObject, field: string): JsonValue | undefined {
  return Object.hasOwn(object, field) ? object[field] : undefined;
}

/** An object in a field; empty where there is none. */
export function objectIn(object: JsonObject, field: string): JsonObject {
  const value = own(object, field);
  return isJsonObject(value) ? value : {};
}

/** The value at a path of own properties; undefined if there is none. */
export function valueAt(value: unknown, ...path: readonly string[]): JsonValue | undefined {
  return path.reduce<JsonValue | undefined>(
    (inner, field) => (isJsonObject(inner) ? own(inner, field) : undefined),
    value as JsonValue | undefined,
  );
}

/** A string; empty for any other value. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The strings of a list; empty for any other value. */
export function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}
