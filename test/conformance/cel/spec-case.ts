// The conformance cases of the CEL specification, as npm's @bufbuild/cel-spec has them (Apache-2.0, from cel-spec
// v0.25.1), with their types and values turned into ours.
import { tests } from '@bufbuild/cel-spec/testdata/conformance.js';
import {
  CelTypeValue,
  doubleOf,
  MapBuilder,
  toDurationValue,
  toInt,
  toTimestampValue,
} from '../../../src/cel/evaluate/index.ts';
import {
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  opaque,
  parameter,
  STRING,
  TIMESTAMP,
  typeOf,
  UINT,
} from '../../../src/cel/model/type.ts';
import type { CelType } from '../../../src/cel/model/type.ts';
import { CelUint, EvaluationFailure } from '../../../src/cel/model/value.ts';
import type { CelResult, CelValue } from '../../../src/cel/model/value.ts';

type Json = Record<string, unknown>;

/** A case as the specification has it. */
export interface SpecCase {
  /** `strings/size/empty`, say. */
  readonly suite: string;
  readonly section: string;
  readonly name: string;
  readonly expression: string;
  readonly container: string;
  readonly isChecked: boolean;
  /** Whether it is only about types. */
  readonly isCheckOnly: boolean;
  readonly variables: Readonly<Record<string, CelType>>;
  readonly functions: readonly SpecFunction[];
  readonly bindings: Readonly<Record<string, CelValue>>;
  /** Whether it has to fail. */
  readonly fails: boolean;
  /** The value; undefined where any will do. */
  readonly expected: CelValue | undefined;
  /** The type that the checker finds. */
  readonly type: CelType | undefined;
  /** Whether it has types or values of protobuf, or names them. */
  readonly needsProtobuf: boolean;
}

export interface SpecFunction {
  readonly name: string;
  readonly id: string;
  readonly parameters: readonly CelType[];
  readonly result: CelType;
}

/** Something of protobuf that we do not have. */
class NeedsProtobuf extends Error {}

interface Suite {
  readonly name: string;
  readonly suites?: Suite[];
  readonly tests?: { readonly original: Json }[];
}

/** All cases, in the order of the files. */
export function specCases(): readonly SpecCase[] {
  return ((tests as Suite).suites ?? []).flatMap((file) =>
    (file.suites ?? []).flatMap((section) =>
      (section.tests ?? []).map(({ original }) => readCase(file.name, section.name, original)),
    ),
  );
}

/** Messages of protobuf that expressions cannot construct here. */
const MESSAGE = /TestAllTypes|google\.protobuf\.(?:Any|Empty)\b/;

function readCase(suite: string, section: string, original: Json): SpecCase {
  const base = {
    suite,
    section,
    name: textOf(original['name']),
    expression: String(original['expr']),
    container: textOf(original['container']),
    isChecked: original['disableCheck'] !== true,
    isCheckOnly: original['checkOnly'] === true,
  };
  try {
    return { ...base, ...readEnvironment(original), needsProtobuf: MESSAGE.test(base.expression) };
  } catch (error) {
    if (!(error instanceof NeedsProtobuf)) {
      throw error;
    }
    const nothing = { variables: {}, functions: [], bindings: {}, fails: false, expected: undefined, type: undefined };
    return { ...base, ...nothing, needsProtobuf: true };
  }
}

function readEnvironment(
  original: Json,
): Pick<SpecCase, 'variables' | 'functions' | 'bindings' | 'fails' | 'expected' | 'type'> {
  const declarations = (original['typeEnv'] ?? []) as Json[];
  const variables: Record<string, CelType> = {};
  const functions: SpecFunction[] = [];
  for (const { name, ident, function: declared } of declarations) {
    if (ident !== undefined) {
      variables[String(name)] = typeOfJson((ident as Json)['type'] as Json);
    }
    for (const overload of ((declared as Json | undefined)?.['overloads'] ?? []) as Json[]) {
      functions.push({
        name: String(name),
        id: String(overload['overloadId']),
        parameters: ((overload['params'] ?? []) as Json[]).map(typeOfJson),
        result: typeOfJson(overload['resultType'] as Json),
      });
    }
  }
  const bindings: Record<string, CelValue> = {};
  for (const [name, bound] of Object.entries((original['bindings'] ?? {}) as Record<string, Json>)) {
    bindings[name] = valueOfJson(bound['value'] as Json);
  }
  const typed = original['typedResult'] as Json | undefined;
  const value = (original['value'] ?? typed?.['result']) as Json | undefined;
  const type = typed?.['deducedType'] as Json | undefined;
  return {
    variables,
    functions,
    bindings,
    fails: original['evalError'] !== undefined,
    expected: expectationOf(original, value),
    type: type === undefined ? undefined : typeOfJson(type),
  };
}

function expectationOf(original: Json, value: Json | undefined): CelValue | undefined {
  if (value !== undefined) {
    return valueOfJson(value);
  }
  // Without an expectation a case expects true, unless it is about failing or only about types.
  return original['evalError'] === undefined && original['typedResult'] === undefined ? true : undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

const PRIMITIVES: Readonly<Record<string, CelType>> = {
  BOOL,
  INT64: INT,
  UINT64: UINT,
  DOUBLE,
  STRING,
  BYTES,
};

function typeOfJson(json: Json): CelType {
  const [kind = ''] = Object.keys(json);
  const inner = json[kind] as Json;
  switch (kind) {
    case 'primitive':
      return PRIMITIVES[String(json['primitive'])] ?? DYN;
    case 'listType':
      return listOf(inner['elemType'] === undefined ? DYN : typeOfJson(inner['elemType'] as Json));
    case 'mapType':
      return mapOf(typeOfJson(inner['keyType'] as Json), typeOfJson(inner['valueType'] as Json));
    case 'wellKnown':
      return wellKnown(String(json['wellKnown']));
    case 'null':
      return NULL;
    case 'dyn':
      return DYN;
    case 'typeParam':
      return parameter(String(json['typeParam']));
    case 'type':
      return typeOf(Object.keys(inner).length === 0 ? DYN : typeOfJson(inner));
    case 'abstractType':
      return opaque(String(inner['name']), ...((inner['parameterTypes'] ?? []) as Json[]).map(typeOfJson));
    case 'messageType':
      return messageType(String(json['messageType']));
    default:
      throw new NeedsProtobuf(kind);
  }
}

function wellKnown(name: string): CelType {
  switch (name) {
    case 'TIMESTAMP':
      return TIMESTAMP;
    case 'DURATION':
      return DURATION;
    default:
      throw new NeedsProtobuf(name);
  }
}

function messageType(name: string): CelType {
  if (name === 'google.protobuf.Timestamp') {
    return TIMESTAMP;
  }
  if (name === 'google.protobuf.Duration') {
    return DURATION;
  }
  throw new NeedsProtobuf(name);
}

function valueOfJson(json: Json): CelValue {
  const [kind = ''] = Object.keys(json);
  const value = json[kind];
  switch (kind) {
    case 'nullValue':
      return null;
    case 'boolValue':
      return value === true;
    case 'stringValue':
      return String(value);
    case 'int64Value':
      return toInt(BigInt(String(value)));
    case 'uint64Value':
      return new CelUint(BigInt(String(value)));
    case 'doubleValue':
      return doubleOf(Number(value));
    case 'bytesValue':
      return new Uint8Array(Buffer.from(String(value), 'base64'));
    case 'typeValue':
      return new CelTypeValue(String(value));
    case 'listValue':
      return (((value as Json)['values'] ?? []) as Json[]).map(valueOfJson);
    case 'mapValue':
      return mapOfJson(((value as Json)['entries'] ?? []) as { key: Json; value: Json }[]);
    default:
      return messageOfJson(value as Json);
  }
}

function mapOfJson(entries: readonly { readonly key: Json; readonly value: Json }[]): CelValue {
  const builder = new MapBuilder();
  for (const { key, value } of entries) {
    builder.set(valueOfJson(key), valueOfJson(value));
  }
  return builder.build();
}

function messageOfJson(message: Json): CelValue {
  const name = String(message['@type']).replace('type.googleapis.com/', '');
  const text = String(message['value']);
  if (name === 'google.protobuf.Timestamp') {
    return known(toTimestampValue(text));
  }
  if (name === 'google.protobuf.Duration') {
    return known(toDurationValue(text));
  }
  throw new NeedsProtobuf(name);
}

function known(value: CelResult): CelValue {
  if (value instanceof EvaluationFailure) {
    throw new Error(value.message);
  }
  return value;
}
