import {
  CelDouble,
  CelDuration,
  CelMap,
  CelObject,
  CelOptional,
  CelTimestamp,
  CelTypeValue,
  CelUint,
} from '../../../src/cel/index.ts';
import { toText } from '../../../src/cel/evaluate/index.ts';
import type { CelValue } from '../../../src/cel/index.ts';
import { formatFloat } from '../../../src/go/index.ts';
import { NamedFormat } from '../../../src/cel/libraries/named-formats.ts';

/** A value in JSON that tells types apart, as the golden data has it. */
export function encodeValue(value: CelValue): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'bigint':
      return { int: String(value) };
    case 'number':
      return Number.isInteger(value) ? { int: String(value) } : { double: formatFloat(value, 'g') };
    default:
      return value === null ? null : encodeObject(value);
  }
}

function encodeObject(value: CelValue & object): unknown {
  if (value instanceof CelDouble) {
    return { double: formatFloat(value.value, 'g') };
  }
  if (value instanceof CelUint) {
    return { uint: String(value.value) };
  }
  if (value instanceof Uint8Array) {
    return { bytes: Buffer.from(value).toString('base64') };
  }
  if (Array.isArray(value)) {
    return value.map((element: CelValue) => encodeValue(element));
  }
  if (value instanceof CelObject) {
    return encodeTyped(value);
  }
  const entries =
    value instanceof CelMap
      ? Array.from(value.entries.values(), ([key, held]) => [encodeValue(key), encodeValue(held)])
      : Object.entries(value as Record<string, CelValue>).map(([key, held]) => [key, encodeValue(held)]);
  return { map: entries.sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)) };
}

function encodeTyped(value: CelObject): unknown {
  if (value instanceof CelOptional) {
    return { optional: value.value === undefined ? [] : [encodeValue(value.value)] };
  }
  if (value instanceof CelTypeValue) {
    return { type: value.name };
  }
  if (value instanceof CelDuration) {
    return { duration: toText(value) };
  }
  if (value instanceof CelTimestamp) {
    return { timestamp: toText(new CelTimestamp(value.seconds, value.nanos)) };
  }
  if (value.typeName.startsWith('kubernetes.authorization.')) {
    return { other: value.typeName };
  }
  return { [value.typeName]: value instanceof NamedFormat ? value.name : printLibraryValue(value) };
}

/** Values of the other libraries' types have a text. */
function printLibraryValue(value: { toString(): string }): string {
  return value.toString();
}
