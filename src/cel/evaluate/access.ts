import { CelBoxed, CelDouble, CelUint, EvaluationFailure } from '../value.ts';
import type { CelRecord, CelResult, CelValue } from '../value.ts';
import { findInMap, indexOf } from './map.ts';
import { printValue } from './print.ts';
import { CelStruct } from './struct.ts';
import { NO_SUCH_OVERLOAD } from './order.ts';
import { isList, isMap, typeNameOf } from './type-name.ts';

/**
 * Whether a property of this name can be read off any object: neither lists nor bytes nor objects have it by birth, so
 * that what is found is a key of a map.
 */
export function isPlainName(name: string): boolean {
  return !(name in Array.prototype) && !(name in Uint8Array.prototype) && !/^\d/.test(name);
}

/** The value of a plain name in a record; undefined when it is not there, or the value is no record. */
export function plainField(value: CelResult, name: string): CelValue | undefined {
  return typeof value === 'object' && value !== null && !(value instanceof CelBoxed)
    ? (value as CelRecord)[name]
    : undefined;
}

/**
 * Looks up a key, an index or a field of any value.
 *
 * @returns undefined when it is not there; a failure when the value cannot be looked up in this way.
 */
export function lookup(value: CelValue, key: CelValue): CelResult | undefined {
  if (isList(value)) {
    const index = indexOf(key, printValue, typeNameOf(key));
    return typeof index === 'string' ? new EvaluationFailure(index) : value[index];
  }
  if (value instanceof CelStruct) {
    return typeof key === 'string' ? value.get(key) : new EvaluationFailure(NO_SUCH_OVERLOAD);
  }
  return isMap(value) ? findInMap(value, key) : undefined;
}

/** `has(value.field)`. */
export function hasField(value: CelValue, field: CelValue): CelResult {
  if (value instanceof CelStruct) {
    return typeof field === 'string' ? value.has(field) : new EvaluationFailure(NO_SUCH_OVERLOAD);
  }
  const found = lookup(value, field);
  return found instanceof EvaluationFailure ? found : found !== undefined;
}

/** Whether anything can be selected from a value at all. */
export function hasFields(value: CelValue): boolean {
  return isList(value) || isMap(value) || value instanceof CelStruct;
}

/** What is said about a key or index that is not there. */
export function missing(value: CelValue, key: CelValue): EvaluationFailure {
  const what = isList(value) ? 'index out of bounds' : 'no such key';
  return new EvaluationFailure(`${what}: ${printValue(key)}`);
}

/** Whether a value can be a key or an index at all. */
export function isQualifier(value: CelValue): boolean {
  return typeof value !== 'object' || value instanceof CelDouble || value instanceof CelUint;
}

/** Names of Go's types, which some messages of API servers have. */
const GO_TYPES: ReadonlyMap<string, string> = new Map([
  ['int', 'types.Int'],
  ['uint', 'types.Uint'],
  ['double', 'types.Double'],
  ['bool', 'types.Bool'],
  ['string', 'types.String'],
  ['bytes', 'types.Bytes'],
  ['null_type', 'types.Null'],
  ['google.protobuf.Timestamp', 'types.Timestamp'],
  ['google.protobuf.Duration', 'types.Duration'],
  ['type', '*types.Type'],
  ['optional_type', '*types.Optional'],
]);

/** The type of a value as messages about loops, indexes and keys name it. */
export function goTypeOf(value: CelValue): string {
  const name = typeNameOf(value);
  return GO_TYPES.get(name) ?? name;
}
