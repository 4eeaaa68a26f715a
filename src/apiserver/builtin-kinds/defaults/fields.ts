// Reading and filling in fields of objects that nobody has checked yet.
import { isJsonObject } from '../../../resources/index.ts';

/** A JSON object while it is filled in. */
export type Fields = Record<string, unknown>;

/** Fills in one type of Kubernetes wherever it occurs, before what is inside of it. */
export type TypeDefaults = (fields: Fields) => void;

export function setDefault(fields: Fields, name: string, value: unknown): void {
  if (value !== undefined) {
    fields[name] ??= value;
  }
}

/** An object in a field; undefined when there is none. */
export function fieldsAt(fields: Fields | undefined, name: string): Fields | undefined {
  const value = fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
  return isJsonObject(value) ? value : undefined;
}

/** The objects in a list in a field. */
export function listAt(fields: Fields | undefined, name: string): readonly Fields[] {
  const value = fields !== undefined && Object.hasOwn(fields, name) ? fields[name] : undefined;
  return Array.isArray(value) ? value.filter((item) => isJsonObject(item)) : [];
}

/** An object in a field, made when there is none. */
export function madeAt(fields: Fields, name: string): Fields {
  const found = fieldsAt(fields, name);
  if (found !== undefined) {
    return found;
  }
  const made: Fields = {};
  fields[name] = made;
  return made;
}
