import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  STRING,
  TIMESTAMP,
  UINT,
  wrapperOf,
} from '../model/type.ts';
import type { CelType } from '../model/type.ts';

/** A message of protobuf that expressions construct by its name. */
export interface Message {
  /** The type of the value that it becomes. */
  readonly type: CelType;
  readonly fields: ReadonlyMap<string, CelType>;
}

/** The only value of the enum that `Value.null_value` has. */
export const NULL_VALUE = 'google.protobuf.NullValue.NULL_VALUE';

const TIME_FIELDS: Readonly<Record<string, CelType>> = { seconds: INT, nanos: INT };
const STRUCT = mapOf(STRING, DYN);
const LIST = listOf(DYN);

/**
 * The well-known messages of protobuf, which become values of the language. API servers also have `Any` and `Empty`, which no
 * value of a Kubernetes object is.
 */
export const MESSAGES: ReadonlyMap<string, Message> = new Map([
  message('BoolValue', wrapperOf(BOOL), { value: BOOL }),
  message('BytesValue', wrapperOf(BYTES), { value: BYTES }),
  message('DoubleValue', wrapperOf(DOUBLE), { value: DOUBLE }),
  message('FloatValue', wrapperOf(DOUBLE), { value: DOUBLE }),
  message('Int32Value', wrapperOf(INT), { value: INT }),
  message('Int64Value', wrapperOf(INT), { value: INT }),
  message('StringValue', wrapperOf(STRING), { value: STRING }),
  message('UInt32Value', wrapperOf(UINT), { value: UINT }),
  message('UInt64Value', wrapperOf(UINT), { value: UINT }),
  message('Duration', DURATION, TIME_FIELDS),
  message('Timestamp', TIMESTAMP, TIME_FIELDS),
  message('ListValue', LIST, { values: LIST }),
  message('Struct', STRUCT, { fields: STRUCT }),
  message('Value', DYN, {
    null_value: INT,
    number_value: DOUBLE,
    string_value: STRING,
    bool_value: BOOL,
    struct_value: STRUCT,
    list_value: LIST,
  }),
]);

function message(name: string, type: CelType, fields: Readonly<Record<string, CelType>>): readonly [string, Message] {
  return [`google.protobuf.${name}`, { type, fields: new Map(Object.entries(fields)) }];
}
