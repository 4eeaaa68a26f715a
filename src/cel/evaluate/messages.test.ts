import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createEnvironment } from '../environment.ts';
import { DYN } from '../model/type.ts';
import { EvaluationFailure } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { Cancellation } from './index.ts';

const environment = createEnvironment({ variables: { x: DYN } });

/** The value and its type, or the error. */
function evaluate(expression: string, x: CelValue = null): string {
  const text = environment.compile(`'%s of %s'.format([${expression}, type(${expression})])`);
  const { value } = text.run({ x }, { budget: 1_000_000 });
  return value instanceof EvaluationFailure || value instanceof Cancellation ? value.message : textOf(value);
}

function textOf(value: CelValue): string {
  return typeof value === 'string' ? value : '';
}

describe("protobuf's messages", () => {
  // As a kube-apiserver of 1.34 answers.
  for (const [expression, expected] of [
    ['google.protobuf.Int32Value{value: 1} + 1', '2 of int'],
    ['google.protobuf.Int32Value{}', '0 of int'],
    ['google.protobuf.Int32Value{value: google.protobuf.Int32Value{value: 3}}', '3 of int'],
    ['google.protobuf.Int32Value{?value: optional.none()}', '0 of int'],
    ['google.protobuf.Int32Value{value: 1} == null', 'false of bool'],
    ['[google.protobuf.Int32Value{value: 1}, 2]', '[1, 2] of list'],
    ['google.protobuf.UInt32Value{value: 5u}', '5 of uint'],
    ["google.protobuf.StringValue{value: 'a'} + 'b'", 'ab of string'],
    ["google.protobuf.BytesValue{value: b'a'}", 'a of bytes'],
    ['google.protobuf.BoolValue{value: true} ? 1 : 2', '1 of int'],
    ['google.protobuf.FloatValue{value: 1.1}', '1.100000023841858 of double'],
    ['google.protobuf.FloatValue{value: 1e300}', '+Inf of double'],
    ['google.protobuf.Timestamp{}', '1970-01-01T00:00:00Z of google.protobuf.Timestamp'],
    [
      'google.protobuf.Timestamp{seconds: 10, nanos: -5}',
      '1970-01-01T00:00:09.999999995Z of google.protobuf.Timestamp',
    ],
    ["google.protobuf.Duration{seconds: 3600} + duration('1s')", '3601s of google.protobuf.Duration'],
    ['google.protobuf.Duration{seconds: 315576000001}', '9223372036.854776s of google.protobuf.Duration'],
    ["google.protobuf.Struct{fields: {'a': 1, 'b': [1u, null]}}", '{"a":1.000000, "b":[1.000000, null]} of map'],
    ["google.protobuf.Struct{fields: {'a': 9007199254740993}}", '{"a":"9007199254740993"} of map'],
    ["google.protobuf.Struct{fields: {'a': b'abc', 'b': duration('90s')}}", '{"a":"YWJj", "b":"90s"} of map'],
    ["google.protobuf.Struct{fields: {'a': 1}}.a", '1 of double'],
    ['google.protobuf.ListValue{}', '[] of list'],
    ["google.protobuf.ListValue{values: ['x']}[0]", 'x of string'],
    ["google.protobuf.Value{number_value: 1.0, string_value: 'x'}", 'x of string'],
    ['google.protobuf.Value{}', 'null of null_type'],
    ['google.protobuf.Value{null_value: 5}', 'null of null_type'],
    ['google.protobuf.NullValue.NULL_VALUE', '0 of int'],
    ['.google.protobuf.Int32Value{value: 1}', '1 of int'],
    ['google.protobuf.Int32Value{value: 3000000000}', failed('Int32Value.value', 'integer overflow')],
    ['google.protobuf.UInt32Value{value: 5000000000u}', failed('UInt32Value.value', 'unsigned integer overflow')],
    [
      "google.protobuf.Int32Value{value: dyn('x')}",
      failed('Int32Value.value', "unsupported native conversion from string to 'int32'"),
    ],
    [
      'google.protobuf.Int32Value{value: dyn(1u)}',
      failed('Int32Value.value', "unsupported type conversion from 'uint' to int32"),
    ],
    [
      'google.protobuf.Int32Value{value: dyn(1.5)}',
      failed('Int32Value.value', "type conversion error from Double to 'int32'"),
    ],
    [
      'google.protobuf.StringValue{value: dyn(true)}',
      failed('StringValue.value', "type conversion error from bool to 'string'"),
    ],
    [
      "google.protobuf.Struct{fields: {'a': {1: 2}}}",
      failed('Struct.fields', "unsupported type conversion from 'int' to string"),
    ],
    [
      "google.protobuf.Struct{fields: {'a': type(1)}}",
      failed('Struct.fields', "type conversion not supported for 'type'"),
    ],
  ] as const) {
    it(`${expression} is ${expected}`, () => assert.equal(evaluate(expression), expected));
  }

  for (const [expression, message] of [
    ["google.protobuf.Int32Value{value: 'a'}", /expected type of field 'value' is 'int' but provided type is 'string'/],
    ['google.protobuf.UInt64Value{value: 5}', /expected type of field 'value' is 'uint' but provided type is 'int'/],
    ['google.protobuf.Int32Value{valu: 1}', /undefined field 'valu'/],
    ['google.protobuf.Int32Value{value: 1}.value', /type 'wrapper\(int\)' does not support field selection/],
    ['google.protobuf.Nothing{}', /undeclared reference to 'google.protobuf.Nothing'/],
    ['google.protobuf.Struct{fields: {1: 1}}', /'map\(string, dyn\)' but provided type is 'map\(int, int\)'/],
  ] as const) {
    it(`refuses ${expression}`, () => assert.throws(() => environment.compile(expression), message));
  }

  it('count the work of copying, and are not nested without end', () => {
    const wide = Array.from({ length: 150_000 }, () => [1]);
    assert.match(evaluate('[1, 2, 3, 4].map(i, google.protobuf.ListValue{values: x}).size()', wide), /work limit/);
    let deep: CelValue = [];
    for (let depth = 0; depth < 200; depth += 1) {
      deep = [deep];
    }
    assert.match(evaluate('google.protobuf.ListValue{values: x}', deep), /nested deeper than 100 levels/);
  });
});

function failed(field: string, why: string): string {
  return `field type conversion error for google.protobuf.${field} value type: ${why}`;
}
