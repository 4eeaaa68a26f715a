// Reads fields of objects, which may have any type.
import { isJsonObject } from '../../../resources/index.ts';

export type ReadFields = Readonly<Record<string, unknown>>;

/** An object in a list, with its path. */
export interface Placed {
  readonly path: string;
  readonly value: ReadFields;
}

/** The field below names; undefined where there is none. */
export function at(value: unknown, ...names: readonly string[]): unknown {
  return names.reduce<unknown>(
    (inner, name) => (isJsonObject(inner) && Object.hasOwn(inner, name) ? inner[name] : undefined),
    value,
  );
}

/** The entries of a list below names. */
export function listAt(value: unknown, ...names: readonly string[]): readonly unknown[] {
  const list = at(value, ...names);
  return Array.isArray(list) ? list : [];
}

/** The objects in a list. */
export function placedItems(list: unknown, path: string): readonly Placed[] {
  return Array.isArray(list)
    ? list.flatMap((value, index) => (isJsonObject(value) ? [{ path: `${path}[${index}]`, value }] : []))
    : [];
}

/** The text; empty for anything else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
