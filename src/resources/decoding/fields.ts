// Reads and sets fields of objects that are not validated yet.
import { isJsonObject } from '../../values/index.ts';

/** A mutable JSON object. */
export type Fields = Record<string, unknown>;

/** Sets the defaults of a type. Called before the defaults of its fields are set. */
export type TypeDefaults = (fields: Fields) => void;

export function setDefault(fields: Fields, name: string, value: unknown): void {
  if (value !== undefined) {
    fields[name] ??= value;
  }
}

/** The object in a field, if any. */
export function fieldsAt(fields: Fields | undefined, name: string): Fields | undefined {
  const value = fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
  return isJsonObject(value) ? value : undefined;
}

/** The objects in a list. */
export function listAt(fields: Fields | undefined, name: string): readonly Fields[] {
  const value = fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
  return Array.isArray(value) ? value.filter((item) => isJsonObject(item)) : [];
}

/** The object in a field, created if absent. */
export function ensureFieldsAt(fields: Fields, name: string): Fields {
  const found = fieldsAt(fields, name);
  if (found !== undefined) {
    return found;
  }
  const created: Fields = {};
  fields[name] = created;
  return created;
}
