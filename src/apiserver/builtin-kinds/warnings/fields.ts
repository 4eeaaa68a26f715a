// Reads fields of objects, which may have any type.
import { isJsonObject, type JsonObject, valueAt } from '../../../values/index.ts';

/** An object in a list, with its path. */
export interface Placed {
  readonly path: string;
  readonly value: JsonObject;
}

/** The entries of a list below names. */
export function listAt(value: unknown, ...names: readonly string[]): readonly unknown[] {
  const list = valueAt(value, ...names);
  return Array.isArray(list) ? list : [];
}

/** The objects in a list. */
export function placedItems(list: unknown, path: string): readonly Placed[] {
  return Array.isArray(list)
    ? list.flatMap((value, index) => (isJsonObject(value) ? [{ path: `${path}[${index}]`, value }] : []))
    : [];
}
