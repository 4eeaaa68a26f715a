import type { CelType } from '../model/type.ts';
import { CelObject, CelUint } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { doubleValue, isInt } from './number.ts';
import { findInMap, keysOf } from './map.ts';
import { isList, isMap, typeNameOf } from './type-name.ts';
import { CelTypeValue } from './type-value.ts';

/** Whether a value has a type, without inspecting all its contents. */
export type TypeTest = (value: CelValue) => boolean;

/** The test for a parameter type. Only the first entry of lists and maps is inspected, as in API servers. */
export function typeTest(type: CelType): TypeTest {
  switch (type.kind) {
    case 'dyn':
    case 'parameter':
    case 'error':
      return () => true;
    case 'null':
      return (value) => value === null;
    case 'bool':
      return (value) => typeof value === 'boolean';
    case 'int':
      return isInt;
    case 'uint':
      return (value) => value instanceof CelUint;
    case 'double':
      return (value) => doubleValue(value) !== undefined;
    case 'string':
      return (value) => typeof value === 'string';
    case 'bytes':
      return (value) => value instanceof Uint8Array;
    case 'timestamp':
      return (value) => typeNameOf(value) === 'google.protobuf.Timestamp';
    case 'duration':
      return (value) => typeNameOf(value) === 'google.protobuf.Duration';
    case 'list':
      return listTest(typeTest(type.element));
    case 'map':
      return mapTest(typeTest(type.key), typeTest(type.value));
    case 'type':
      return (value) => value instanceof CelTypeValue;
    case 'wrapper':
      return typeTest(type.of);
    default: {
      const { name } = type;
      return (value) => value instanceof CelObject && value.typeName === name;
    }
  }
}

function listTest(element: TypeTest): TypeTest {
  return (value) => isList(value) && (value[0] === undefined || element(value[0]));
}

function mapTest(key: TypeTest, entry: TypeTest): TypeTest {
  return (value) => {
    if (!isMap(value)) {
      return false;
    }
    const [first] = keysOf(value);
    return first === undefined || (key(first) && entry(findInMap(value, first) ?? null));
  };
}

/** The name of a type as in expressions and `type()`. */
export function nameOfType(type: CelType): string {
  switch (type.kind) {
    case 'null':
      return 'null_type';
    case 'timestamp':
      return 'google.protobuf.Timestamp';
    case 'duration':
      return 'google.protobuf.Duration';
    case 'opaque':
    case 'struct':
    case 'parameter':
      return type.name;
    default:
      return type.kind;
  }
}
