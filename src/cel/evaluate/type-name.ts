import { CelBoxed, CelDouble, CelMap, CelObject, CelUint } from '../model/value.ts';
import type { CelRecord, CelValue } from '../model/value.ts';

/** The name of a value's type, as in `type(value)` and errors. */
export function typeNameOf(value: CelValue): string {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'number':
      return Number.isInteger(value) ? 'int' : 'double';
    case 'bigint':
      return 'int';
    default:
      return typeNameOfObject(value);
  }
}

function typeNameOfObject(value: CelValue & (object | null)): string {
  if (value === null) {
    return 'null_type';
  }
  if (value instanceof CelObject) {
    return value.typeName;
  }
  if (value instanceof CelDouble) {
    return 'double';
  }
  if (value instanceof CelUint) {
    return 'uint';
  }
  if (Array.isArray(value)) {
    return 'list';
  }
  return value instanceof Uint8Array ? 'bytes' : 'map';
}

/** Whether a value is a map with string keys, as JSON.parse creates it. */
function isRecord(value: unknown): value is CelRecord {
  return (
    typeof value === 'object' &&
    value !== null &&
    !(value instanceof CelBoxed) &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array)
  );
}

export function isMap(value: unknown): value is CelRecord | CelMap {
  return isRecord(value) || value instanceof CelMap;
}

export function isList(value: unknown): value is readonly CelValue[] {
  return Array.isArray(value);
}
