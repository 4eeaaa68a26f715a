import type { KeyPath } from '../engine/index.ts';

/** The path of a field in the notation of API servers, `spec.rules[0].operations`. */
export function fieldPathOf(field: string): KeyPath {
  return (field.match(/[^.[\]]+/g) ?? []).map((key) => (/^\d+$/.test(key) ? Number(key) : key));
}
