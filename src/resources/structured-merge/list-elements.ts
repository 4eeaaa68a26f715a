import { isJsonObject } from '../../values/index.ts';
import type { JsonValue } from '../../values/index.ts';
import { MergeError } from './merge-error.ts';
import type { ListType } from './merge-type.ts';
import { keyElement, valueElement } from './path-element.ts';
import type { KeyField, PathElement } from './path-element.ts';

/** The path element of a list element. Throws MergeError `type-mismatch` for an invalid element. */
export function elementOf(list: ListType, value: JsonValue, index: number): PathElement {
  const element = elementOrProblem(list, value);
  if (typeof element === 'string') {
    throw new MergeError('type-mismatch', `element ${index}: ${element}`);
  }
  return element;
}

/** The path element, or why a value cannot be an element of the list. */
export function elementOrProblem(list: ListType, value: JsonValue): PathElement | string {
  return list.keys.length === 0 ? memberOrProblem(value) : keyedOrProblem(list, value);
}

function memberOrProblem(value: JsonValue): PathElement | string {
  if (value === null) {
    return "associative list without keys has an element that's an explicit null";
  }
  if (Array.isArray(value)) {
    return 'not supported: associative list with lists as elements';
  }
  return isJsonObject(value) ? "associative list without keys has an element that's a map type" : valueElement(value);
}

function keyedOrProblem(list: ListType, value: JsonValue): PathElement | string {
  if (value === null) {
    return 'associative list with keys may not have a null element';
  }
  if (!isJsonObject(value)) {
    return 'associative list with keys may not have non-map elements';
  }
  const fields: KeyField[] = [];
  for (const name of list.keys) {
    const field = Object.hasOwn(value, name) ? value[name] : list.element().map?.defaultOf(name);
    if (field !== undefined) {
      fields.push([name, field]);
    }
  }
  if (fields.length > 0) {
    return keyElement(fields);
  }
  const keys = list.keys.map((key) => JSON.stringify(key)).join(' ');
  return `associative list with keys has an element that omits all key fields [${keys}] (and doesn't have default values for any key fields)`;
}
