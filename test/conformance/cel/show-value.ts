import {
  CelDuration,
  CelOptional,
  CelTimestamp,
  CelTypeValue,
  doubleValue,
  findInMap,
  formatTimestamp,
  isMap,
  keysOf,
  typeNameOf,
} from '../../../src/cel/evaluate/index.ts';
import { formatFloat } from '../../../src/go/index.ts';
import { CelUint } from '../../../src/cel/model/value.ts';
import type { CelValue } from '../../../src/cel/model/value.ts';

/** A value as text that tells its type, in the form that golden.json has. */
export function showValue(value: CelValue): string {
  if (value === null || typeof value === 'boolean' || typeof value === 'bigint') {
    return String(value);
  }
  if (typeof value === 'string') {
    return JSON.stringify(value);
  }
  const double = doubleValue(value);
  if (double !== undefined) {
    return `double(${formatFloat(double, 'g')})`;
  }
  if (typeof value === 'number') {
    return String(value);
  }
  if (Array.isArray(value)) {
    return `[${value.map((element: CelValue) => showValue(element)).join(', ')}]`;
  }
  if (isMap(value)) {
    const entries = keysOf(value).map((key) => `${showValue(key)}: ${showValue(findInMap(value, key) ?? null)}`);
    return `{${entries.toSorted().join(', ')}}`;
  }
  return showObject(value);
}

function showObject(value: CelValue): string {
  if (value instanceof CelUint) {
    return `${value.value}u`;
  }
  if (value instanceof Uint8Array) {
    return `b"${Buffer.from(value).toString('hex')}"`;
  }
  if (value instanceof CelTimestamp) {
    return `timestamp(${formatTimestamp(value)})`;
  }
  if (value instanceof CelDuration) {
    return `duration(${value.nanoseconds})`;
  }
  if (value instanceof CelOptional) {
    return value.value === undefined ? 'optional.none()' : `optional(${showValue(value.value)})`;
  }
  return value instanceof CelTypeValue ? `type(${value.name})` : typeNameOf(value);
}
