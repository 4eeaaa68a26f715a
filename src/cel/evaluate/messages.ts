// Values of protobuf's well-known messages, such as `google.protobuf.Duration{seconds: 90}`, with the errors of API servers.
import { NS_PER_SECOND } from '../../go/index.ts';
import { CelDouble, CelUint, EvaluationFailure } from '../model/value.ts';
import type { CelResult, CelValue, WorkMeter } from '../model/value.ts';
import { findInMap, keysOf, MapBuilder, mapSize } from './map.ts';
import { doubleOf, doubleValue, isInt, MAX_INT, MIN_INT } from './number.ts';
import { CelOptional } from './optional.ts';
import type { StructFactory } from './struct.ts';
import { addDuration, CelDuration, CelTimestamp, formatDuration, formatTimestamp } from './time.ts';
import { isList, isMap, typeNameOf } from './type-name.ts';

type Fields = ReadonlyMap<string, CelValue>;
/** Makes the value of a field. `meter` counts the work. */
type Convert = (value: CelValue, meter: WorkMeter) => CelResult;

interface Message {
  readonly fields: ReadonlyMap<string, Convert>;
  /** The value of the message, from converted fields. */
  readonly build: (fields: Fields) => CelResult;
}

/** Bounds of 32-bit integers. */
const MAX_INT32 = 2 ** 31 - 1;
const MAX_UINT32 = 2n ** 32n - 1n;
/** Levels of lists and maps in a value of JSON, as API servers accept in objects. */
const MAX_NESTING = 100;

/** Work to convert an element or entry of a value of JSON, some 100 ns. */
const WORK_PER_ELEMENT = 10;

const SECONDS_AND_NANOS = { seconds: scalar('int64', isInt), nanos: int32 };

const MESSAGES: ReadonlyMap<string, Message> = new Map(
  Object.entries({
    BoolValue: wrapper(scalar('bool', isBool), false),
    BytesValue: wrapper(scalar('[]uint8', isBytes), new Uint8Array()),
    DoubleValue: wrapper(scalar('float64', isDouble), doubleOf(0)),
    FloatValue: wrapper(float32, doubleOf(0)),
    Int32Value: wrapper(int32, 0),
    Int64Value: wrapper(scalar('int64', isInt), 0),
    StringValue: wrapper(scalar('string', isString), ''),
    UInt32Value: wrapper(uint32, new CelUint(0n)),
    UInt64Value: wrapper(scalar('uint64', isUint), new CelUint(0n)),
    Duration: message(SECONDS_AND_NANOS, (fields) => new CelDuration(clamped(nanosecondsOf(fields)))),
    Timestamp: message(SECONDS_AND_NANOS, (fields) => addDuration(new CelTimestamp(0), nanosecondsOf(fields))),
    ListValue: message({ values: jsonList }, (fields) => fields.get('values') ?? []),
    Struct: message({ fields: jsonMap }, (fields) => fields.get('fields') ?? {}),
    Value: message(
      {
        null_value: (value) => (isInt(value) ? null : mismatch(value, 'int32')),
        number_value: scalar('float64', isDouble),
        string_value: scalar('string', isString),
        bool_value: scalar('bool', isBool),
        struct_value: jsonMap,
        list_value: jsonList,
      },
      // Only one of the fields is set: the last one.
      (fields) => [...fields.values()].at(-1) ?? null,
    ),
  }).map(([name, one]) => [`google.protobuf.${name}`, one]),
);

/** Creates the values of protobuf's well-known messages. */
export const MESSAGE_STRUCTS: StructFactory = {
  has: (typeName) => MESSAGES.has(typeName),
  create(typeName, fields, meter) {
    const { fields: declared, build } = MESSAGES.get(typeName) ?? message({}, () => null);
    const values = new Map<string, CelValue>();
    for (const [name, given] of fields) {
      const value = declared.get(name)?.(given, meter) ?? null;
      if (value instanceof EvaluationFailure) {
        return new EvaluationFailure(
          `field type conversion error for ${typeName}.${name} value type: ${value.message}`,
        );
      }
      values.set(name, value);
    }
    return build(values);
  },
};

function message(fields: Readonly<Record<string, Convert>>, build: Message['build']): Message {
  return { fields: new Map(Object.entries(fields)), build };
}

function wrapper(convert: Convert, zero: CelValue): Message {
  return message({ value: convert }, (fields) => fields.get('value') ?? zero);
}

// Numbers and texts --------------------------------------------------------------------------------------------------

function scalar(goType: string, isOfType: (value: CelValue) => boolean): Convert {
  return (value) => (isOfType(value) ? value : mismatch(value, goType));
}

function int32(value: CelValue): CelResult {
  if (!isInt(value)) {
    return mismatch(value, 'int32');
  }
  return value > MAX_INT32 || value < -MAX_INT32 - 1 ? new EvaluationFailure('integer overflow') : value;
}

function uint32(value: CelValue): CelResult {
  if (!(value instanceof CelUint)) {
    return mismatch(value, 'uint32');
  }
  return value.value > MAX_UINT32 ? new EvaluationFailure('unsigned integer overflow') : value;
}

function float32(value: CelValue): CelResult {
  const double = doubleValue(value);
  return double === undefined ? mismatch(value, 'float32') : doubleOf(Math.fround(double));
}

function isBool(value: CelValue): boolean {
  return typeof value === 'boolean';
}

function isString(value: CelValue): boolean {
  return typeof value === 'string';
}

function isBytes(value: CelValue): boolean {
  return value instanceof Uint8Array;
}

function isUint(value: CelValue): boolean {
  return value instanceof CelUint;
}

function isDouble(value: CelValue): boolean {
  return doubleValue(value) !== undefined;
}

/** As cel-go words it, which differs by the type of the value. */
function mismatch(value: CelValue, goType: string): EvaluationFailure {
  const type = typeNameOf(value);
  switch (type) {
    case 'string':
      return new EvaluationFailure(`unsupported native conversion from string to '${goType}'`);
    case 'int':
    case 'uint':
      return new EvaluationFailure(`unsupported type conversion from '${type}' to ${goType}`);
    default:
      return new EvaluationFailure(`type conversion error from ${GO_NAMES.get(type) ?? `'${type}'`} to '${goType}'`);
  }
}

const GO_NAMES: ReadonlyMap<string, string> = new Map([
  ['bool', 'bool'],
  ['bytes', 'Bytes'],
  ['double', 'Double'],
  ['list', 'list'],
  ['map', 'map'],
  ['google.protobuf.Duration', "'Duration'"],
  ['google.protobuf.Timestamp', "'Timestamp'"],
]);

// Times --------------------------------------------------------------------------------------------------------------

function nanosecondsOf(fields: Fields): bigint {
  return intOf(fields.get('seconds')) * NS_PER_SECOND + intOf(fields.get('nanos'));
}

function intOf(value: CelValue | undefined): bigint {
  return value !== undefined && isInt(value) ? BigInt(value) : 0n;
}

function clamped(nanoseconds: bigint): bigint {
  return nanoseconds > MAX_INT ? MAX_INT : nanoseconds < MIN_INT ? MIN_INT : nanoseconds;
}

// JSON ---------------------------------------------------------------------------------------------------------------

function jsonList(value: CelValue, meter: WorkMeter): CelResult {
  return isList(value) ? json(value, meter) : mismatch(value, '*structpb.ListValue');
}

function jsonMap(value: CelValue, meter: WorkMeter): CelResult {
  return isMap(value) ? json(value, meter) : mismatch(value, '*structpb.Struct');
}

/** The value that a value has after JSON: all numbers are doubles. */
function json(value: CelValue, meter: WorkMeter, depth = 0): CelResult {
  if (depth > MAX_NESTING) {
    return new EvaluationFailure(`the value is nested deeper than ${MAX_NESTING} levels`);
  }
  if (isList(value)) {
    meter.work(value.length * WORK_PER_ELEMENT);
    return listInJson(value, meter, depth);
  }
  if (isMap(value)) {
    meter.work(mapSize(value) * WORK_PER_ELEMENT);
    return mapInJson(value, meter, depth);
  }
  if (value instanceof CelOptional) {
    return json(value.value ?? null, meter, depth + 1);
  }
  return scalarInJson(value);
}

function listInJson(list: readonly CelValue[], meter: WorkMeter, depth: number): CelResult {
  const result: CelValue[] = [];
  for (const element of list) {
    const converted = json(element, meter, depth + 1);
    if (converted instanceof EvaluationFailure) {
      return converted;
    }
    result.push(converted);
  }
  return result;
}

function mapInJson(map: Parameters<typeof keysOf>[0], meter: WorkMeter, depth: number): CelResult {
  const builder = new MapBuilder();
  for (const key of keysOf(map)) {
    const converted =
      typeof key === 'string' ? json(findInMap(map, key) ?? null, meter, depth + 1) : mismatch(key, 'string');
    if (converted instanceof EvaluationFailure) {
      return converted;
    }
    builder.set(key, converted);
  }
  return builder.build();
}

/** The text that JSON has for bytes, times, and integers that a double would round; undefined for all other values. */
export function textInJson(value: CelValue): string | undefined {
  if (typeof value === 'bigint') {
    return String(value);
  }
  if (value instanceof CelUint) {
    return value.value <= BigInt(Number.MAX_SAFE_INTEGER) ? undefined : String(value.value);
  }
  if (value instanceof Uint8Array) {
    return Buffer.from(value).toString('base64');
  }
  if (value instanceof CelTimestamp) {
    return formatTimestamp(value);
  }
  return value instanceof CelDuration ? formatDuration(value) : undefined;
}

function scalarInJson(value: CelValue): CelResult {
  if (value === null || typeof value === 'boolean' || typeof value === 'string' || value instanceof CelDouble) {
    return value;
  }
  if (typeof value === 'number') {
    return doubleOf(value);
  }
  const text = textInJson(value);
  if (text !== undefined) {
    return text;
  }
  if (value instanceof CelUint) {
    return doubleOf(Number(value.value));
  }
  return new EvaluationFailure(`type conversion not supported for '${typeNameOf(value)}'`);
}
