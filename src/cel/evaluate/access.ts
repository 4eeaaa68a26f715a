import { CelBoxed, CelDouble, CelUint, EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelRecord, CelResult, CelValue } from '../model/value.ts';
import { findInMap, indexOf } from './map.ts';
import { printValue } from './print.ts';
import { CelStruct } from './struct.ts';
import { isList, isMap, typeNameOf } from './type-name.ts';

/**
 * Whether a name can be read as a property of any value: lists, bytes and objects have no inherited property with it,
 * so a property that is found is a map key.
 */
export function isPlainName(name: string): boolean {
  return !(name in Array.prototype) && !(name in Uint8Array.prototype) && !/^\d/.test(name);
}

/** The value of a plain name in a record; undefined if it is absent or the value is not a record. */
export function plainField(value: CelResult, name: string): CelValue | undefined {
  return typeof value === 'object' && value !== null && !(value instanceof CelBoxed)
    ? (value as CelRecord)[name]
    : undefined;
}

/**
 * Looks up a key, an index or a field.
 * @returns undefined if it is absent; a failure if the value does not support the lookup
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

/** The failure for an absent key or index. */
export function missing(value: CelValue, key: CelValue): EvaluationFailure {
  const what = isList(value) ? 'index out of bounds' : 'no such key';
  return new EvaluationFailure(`${what}: ${printValue(key)}`);
}

/** Whether a value can be a key or an index. */
export function isQualifier(value: CelValue): boolean {
  return typeof value !== 'object' || value instanceof CelDouble || value instanceof CelUint;
}

/** Names of Go types, which appear in some error messages of API servers. */
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

/** The type name in error messages about loops, indexes and keys. */
export function goTypeOf(value: CelValue): string {
  const name = typeNameOf(value);
  return GO_TYPES.get(name) ?? name;
}
