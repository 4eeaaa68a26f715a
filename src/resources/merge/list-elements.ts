import { isJsonObject } from '../json.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { MergeError } from './merge-error.ts';
import type { ListType } from './merge-type.ts';
import { keyElement, valueElement } from './path-element.ts';
import type { KeyField, PathElement } from './path-element.ts';

/** The path element of one element of a list that is merged. Throws MergeError `type-mismatch` when it has none. */
export function elementOf(list: ListType, value: JsonValue, index: number): PathElement {
  const problem = problemOf(list, value);
  if (problem !== undefined) {
    throw new MergeError('type-mismatch', `element ${index}: ${problem}`);
  }
  return list.keys.length === 0 ? valueElement(value) : keyElement(keyFieldsOf(list, value as JsonObject));
}

/** Why a value cannot be an element of a list that is merged. */
export function problemOf(list: ListType, value: JsonValue): string | undefined {
  if (list.keys.length === 0) {
    if (value === null) {
      return "associative list without keys has an element that's an explicit null";
    }
    if (Array.isArray(value)) {
      return 'not supported: associative list with lists as elements';
    }
    return isJsonObject(value) ? "associative list without keys has an element that's a map type" : undefined;
  }
  if (value === null) {
    return 'associative list with keys may not have a null element';
  }
  if (!isJsonObject(value)) {
    return 'associative list with keys may not have non-map elements';
  }
  if (keyFieldsOf(list, value).length === 0) {
    const keys = list.keys.map((key) => JSON.stringify(key)).join(' ');
    return `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`;
  }
  return undefined;
}

function keyFieldsOf(list: ListType, element: JsonObject): readonly KeyField[] {
  return list.keys.flatMap((name): KeyField[] => {
    const value = Object.hasOwn(element, name) ? element[name] : list.element().map?.defaultOf(name);
    return value === undefined ? [] : [[name, value]];
  });
}
