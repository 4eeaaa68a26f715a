import { CelObject, CelUint } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { toText } from './conversion.ts';
import { findInMap, keysOf } from './map.ts';
import { CelOptional } from './optional.ts';
import { isList, isMap } from './type-name.ts';
import { CelTypeValue } from './type-value.ts';

/** Maximum nesting of printed values; messages need no more. */
const MAX_DEPTH = 8;
/** Maximum number of printed elements or entries per value. */
const MAX_ITEMS = 100;
/** Maximum number of printed values in total: the text of lists that share elements can be exponentially long. */
const MAX_VALUES = 1_000;
/** Characters of a string that count as another value. */
const CHARACTERS_PER_VALUE = 64;

/** Prints a value for a message as API servers do: strings without quotes, `[1, 2]`, `{a: 1}`. */
export function printValue(value: CelValue): string {
  return printWithin(value, { left: MAX_VALUES }, 0);
}

function printWithin(value: CelValue, values: { left: number }, depth: number): string {
  values.left -= 1;
  if (value === null) {
    return 'null';
  }
  if (depth > MAX_DEPTH || values.left < 0) {
    return '…';
  }
  const print = (element: CelValue): string => printWithin(element, values, depth + 1);
  if (isList(value)) {
    return `[${value.slice(0, MAX_ITEMS).map(print).join(', ')}]`;
  }
  if (isMap(value)) {
    const entries = keysOf(value)
      .slice(0, MAX_ITEMS)
      .map((key) => `${print(key)}: ${print(findInMap(value, key) ?? null)}`);
    return `{${entries.join(', ')}}`;
  }
  const text = printObject(value, print);
  values.left -= text.length / CHARACTERS_PER_VALUE;
  return text;
}

function printObject(value: CelValue, print: (value: CelValue) => string): string {
  if (value instanceof CelTypeValue) {
    return value.name;
  }
  if (value instanceof CelOptional) {
    return value.value === undefined ? 'optional.none()' : `optional(${print(value.value)})`;
  }
  if (value instanceof CelUint) {
    return value.value.toString();
  }
  const text = toText(value);
  return typeof text === 'string' ? text : value instanceof CelObject ? value.typeName : '';
}
