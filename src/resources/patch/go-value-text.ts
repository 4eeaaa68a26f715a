import { numberText } from '../go-text.ts';
import { isJsonObject } from '../json.ts';
import type { JsonValue } from '../json.ts';
import { checkDepth } from './patch-error.ts';

/** A JSON value as Go's `%v` prints it: `map[a:1 b:[x y]]`. For messages that have to be those of API servers. */
export function goText(value: JsonValue | readonly (JsonValue | readonly JsonValue[])[], depth = 0): string {
  checkDepth(depth);
  if (value === null) {
    return '<nil>';
  }
  if (typeof value === 'number') {
    return numberText(value);
  }
  if (Array.isArray(value)) {
    return `[${value.map((one: JsonValue) => goText(one, depth + 1)).join(' ')}]`;
  }
  if (!isJsonObject(value)) {
    return typeof value === 'string' ? value : String(value === true);
  }
  const entries = Object.keys(value).toSorted();
  return `map[${entries.map((key) => `${key}:${goText(value[key] ?? null, depth + 1)}`).join(' ')}]`;
}
