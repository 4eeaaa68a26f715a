import { GoFloat, isGoList, isGoObject, isIntegerNumber, JsonNumber } from './value.ts';
import type { GoValue } from './value.ts';

/** Go's kind of a value (`reflect.Kind`). */
export function kindOf(value: GoValue): string {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'bigint':
      return 'int';
    case 'number':
      return isIntegerNumber(value) ? 'int64' : 'float64';
    default:
      return objectKind(value);
  }
}

function objectKind(value: GoValue): string {
  if (value instanceof GoFloat) {
    return 'float64';
  }
  if (value instanceof JsonNumber) {
    return 'string';
  }
  return isGoList(value) ? 'slice' : isGoObject(value) ? 'map' : 'invalid';
}

const TYPES: ReadonlyMap<string, string> = new Map([
  ['slice', '[]interface {}'],
  ['map', 'map[string]interface {}'],
  ['invalid', '<nil>'],
]);

/** Go's type of a value (`%T`). */
export function typeOf(value: GoValue): string {
  const kind = kindOf(value);
  return TYPES.get(kind) ?? kind;
}
