import { CelObject, CelUint } from '../value.ts';
import type { CelValue } from '../value.ts';
import { toText } from './conversion.ts';
import { findInMap, keysOf } from './map.ts';
import { CelOptional } from './optional.ts';
import { isList, isMap } from './type-name.ts';
import { CelTypeValue } from './type-value.ts';

/** Values nested deeper are not printed: it is for messages. */
const MAX_DEPTH = 8;
/** Elements and entries printed of one value. */
const MAX_ITEMS = 100;

/** Prints a value for a message as API servers do: strings as they are, `[1, 2]`, `{a: 1}`. */
export function printValue(value: CelValue, depth = 0): string {
  if (value === null) {
    return 'null';
  }
  if (depth > MAX_DEPTH) {
    return '…';
  }
  if (isList(value)) {
    return `[${value
      .slice(0, MAX_ITEMS)
      .map((element) => printValue(element, depth + 1))
      .join(', ')}]`;
  }
  if (isMap(value)) {
    const entries = keysOf(value)
      .slice(0, MAX_ITEMS)
      .map((key) => `${printValue(key, depth + 1)}: ${printValue(findInMap(value, key) ?? null, depth + 1)}`);
    return `{${entries.join(', ')}}`;
  }
  return printObject(value, depth);
}

function printObject(value: CelValue, depth: number): string {
  if (value instanceof CelTypeValue) {
    return value.name;
  }
  if (value instanceof CelOptional) {
    return value.value === undefined ? 'optional.none()' : `optional(${printValue(value.value, depth + 1)})`;
  }
  if (value instanceof CelUint) {
    return value.value.toString();
  }
  const text = toText(value);
  return typeof text === 'string' ? text : value instanceof CelObject ? value.typeName : '';
}
