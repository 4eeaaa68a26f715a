import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { tests } from '@bufbuild/cel-spec/testdata/checking.js';
import type { Expression } from '../../../src/cel/model/ast.ts';
import { check, Declarations, formatType } from '../../../src/cel/check/index.ts';
import type { CheckedExpression, TypeProvider } from '../../../src/cel/check/index.ts';
import { CelError, formatIssue } from '../../../src/cel/model/errors.ts';
import { OPTIONAL_LIBRARY, standardLibrary } from '../../../src/cel/evaluate/index.ts';
import type { FunctionDeclaration, Library } from '../../../src/cel/model/library.ts';
import { MacroSet, parse, STANDARD_MACROS } from '../../../src/cel/syntax/index.ts';
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
  optionalOf,
  parameter,
  STRING,
  struct,
  TIMESTAMP,
  UINT,
  wrapperOf,
} from '../../../src/cel/model/type.ts';
import type { CelType } from '../../../src/cel/model/type.ts';
import { debugText } from './debug-text.ts';

/** One test of cel-go's checker: either a tree with types is expected, or errors. Types are as protobuf's JSON. */
interface CheckingTest {
  readonly original: {
    readonly expr: string;
    readonly container?: string;
    readonly typeEnv?: readonly Declaration[];
  };
  readonly checkedAst?: string;
  readonly type?: string;
  readonly error?: string;
}

interface Declaration {
  readonly name: string;
  readonly ident?: { readonly type: TypeMessage };
  readonly function?: {
    readonly overloads: readonly {
      readonly overloadId: string;
      readonly params?: readonly TypeMessage[];
      readonly resultType: TypeMessage;
      readonly isInstanceFunction?: boolean;
    }[];
  };
}

interface TypeMessage {
  readonly dyn?: object;
  readonly primitive?: string;
  readonly wellKnown?: string;
  readonly wrapper?: string;
  readonly messageType?: string;
  readonly typeParam?: string;
  readonly listType?: { readonly elemType: TypeMessage };
  readonly mapType?: { readonly keyType: TypeMessage; readonly valueType: TypeMessage };
  readonly abstractType?: { readonly name: string; readonly parameterTypes?: readonly TypeMessage[] };
}

const ANY = "protobuf's Any: nothing in Kubernetes has it";
/** Optional entries without the optional syntax: cel-go then looks no further, here what they hold is parsed as well. */
const OPTIONAL_ENTRY = /\{\?/u;

const CROSS_TYPE = 'numbers of different types compare since Kubernetes 1.28; the test turns that off';

const IN_CONTAINER = 'expressions of API servers are in no namespace';

/** What is not run: the reason of the first pattern that occurs in the expression. */
const EXCLUSIONS: readonly (readonly [pattern: RegExp, reason: string])[] = [[/google\.protobuf\.Any\{/u, ANY]];

describe("cel-go's checker tests", () => {
  const all = tests.tests as readonly CheckingTest[];

  for (const [index, test] of all.entries()) {
    const { expr, container } = test.original;
    const name = `${index} ${expr.slice(0, 60).replaceAll(/\s+/gu, ' ')}`;
    const reason = container === undefined ? EXCLUSIONS.find(([pattern]) => pattern.test(expr))?.[1] : IN_CONTAINER;
    if (reason !== undefined) {
      it.skip(`${name} (${reason})`, () => {});
    } else if (test.error === undefined) {
      it(name, () => expectTypes(test));
    } else {
      it(name, () => expectErrors(test));
    }
  }

  it('are all there', () => {
    assert.ok(all.length >= 135, `expected at least 135 tests, got ${all.length}`);
  });
});

function expectTypes(test: CheckingTest): void {
  const checked = checkHere(test);
  assert.equal(formatType(checked.resultType), test.type);
  assert.equal(
    debugText(checked.expression, (node) => adornment(checked, node)),
    test.checkedAst,
  );
}

function expectErrors(test: CheckingTest): void {
  assert.throws(
    () => checkHere(test),
    (thrown) => {
      assert.ok(thrown instanceof CelError);
      const expected = (test.error ?? '').replaceAll('ERROR: :', 'ERROR: <input>:');
      const issues = OPTIONAL_ENTRY.test(test.original.expr) ? thrown.issues.slice(0, 1) : thrown.issues;
      assert.equal(issues.map(formatIssue).join('\n'), expected);
      return true;
    },
  );
}

/** What cel-go writes behind a node: `~type^reference`. */
function adornment(checked: CheckedExpression, node: Expression | undefined): string {
  const type = node === undefined ? undefined : checked.types[node.id];
  if (node === undefined || type === undefined) {
    return '';
  }
  const overloads =
    checked.overloads
      .get(node.id)
      ?.map((overload) => overload.id)
      .toSorted() ?? [];
  const reference = node.kind === 'identifier' ? [node.name] : node.kind === 'struct' ? [node.typeName] : overloads;
  return `~${formatType(type)}${reference.length === 0 ? '' : `^${reference.join('|')}`}`;
}

function checkHere({ original: { expr, typeEnv = [] }, error }: CheckingTest): CheckedExpression {
  const variables = typeEnv.flatMap(({ name, ident }) =>
    ident === undefined ? [] : [[name, typeOfMessage(ident.type)]],
  );
  const declarations = new Declarations({
    libraries: [standardLibrary(), OPTIONAL_LIBRARY, TEST_LIBRARY, libraryOf(typeEnv)],
    variables: { ...TEST_VARIABLES, ...Object.fromEntries(variables) },
    types: PROTOBUF_TYPES,
    isExcluded: (id) => error !== undefined && isCrossType(id),
  });
  const parsed = parse(expr, {
    macros: new MacroSet(STANDARD_MACROS),
    optionalSyntax: false,
    escapedIdentifiers: false,
  });
  return check(parsed, declarations);
}

/** See {@link CROSS_TYPE}. */
function isCrossType(id: string): boolean {
  assert.ok(CROSS_TYPE);
  return /^(?:less|greater)(?:_equals)?_(?:int64|uint64|double)_(?:int64|uint64|double)$/u.test(id);
}

function libraryOf(declarations: readonly Declaration[]): Library {
  const functions = declarations.flatMap(({ name, function: declared }): FunctionDeclaration[] =>
    declared === undefined
      ? []
      : [
          {
            name,
            overloads: declared.overloads.map((overload) => ({
              id: overload.overloadId,
              isMember: overload.isInstanceFunction === true,
              parameters: (overload.params ?? []).map(typeOfMessage),
              result: typeOfMessage(overload.resultType),
              call: () => null,
            })),
          },
        ],
  );
  return { name: 'declared by the test', since: undefined, functions };
}

/** What cel-go's tests declare beside the language. */
const TEST_LIBRARY: Library = {
  name: 'test',
  since: undefined,
  functions: [
    {
      name: 'fg_s',
      overloads: [{ id: 'fg_s_0', isMember: false, parameters: [], result: STRING, call: () => null }],
    },
    {
      name: 'fi_s_s',
      overloads: [{ id: 'fi_s_s_0', isMember: true, parameters: [STRING], result: STRING, call: () => null }],
    },
  ],
};

const TEST_VARIABLES: Readonly<Record<string, CelType>> = {
  is: STRING,
  ii: INT,
  iu: UINT,
  iz: BOOL,
  ib: BYTES,
  id: DOUBLE,
  ix: NULL,
};

const PRIMITIVES: Readonly<Record<string, CelType>> = {
  BOOL,
  INT64: INT,
  UINT64: UINT,
  DOUBLE,
  STRING,
  BYTES,
};

const WELL_KNOWN_MESSAGES: Readonly<Record<string, CelType>> = {
  'google.protobuf.Int32Value': wrapperOf(INT),
  'google.protobuf.Struct': mapOf(STRING, DYN),
  'google.protobuf.ListValue': listOf(DYN),
  'google.protobuf.Value': DYN,
  'google.protobuf.Timestamp': TIMESTAMP,
  'google.protobuf.Duration': DURATION,
};

function typeOfMessage(message: TypeMessage): CelType {
  if (message.primitive !== undefined) {
    return PRIMITIVES[message.primitive] ?? DYN;
  }
  if (message.wrapper !== undefined) {
    return wrapperOf(PRIMITIVES[message.wrapper] ?? DYN);
  }
  if (message.messageType !== undefined) {
    return WELL_KNOWN_MESSAGES[message.messageType] ?? struct(message.messageType);
  }
  if (message.listType !== undefined) {
    return listOf(typeOfMessage(message.listType.elemType));
  }
  if (message.mapType !== undefined) {
    return mapOf(typeOfMessage(message.mapType.keyType), typeOfMessage(message.mapType.valueType));
  }
  if (message.abstractType !== undefined) {
    const parameters = (message.abstractType.parameterTypes ?? []).map(typeOfMessage);
    return message.abstractType.name === 'optional_type'
      ? optionalOf(parameters[0] ?? DYN)
      : opaque(message.abstractType.name, ...parameters);
  }
  return message.typeParam === undefined ? DYN : parameter(message.typeParam);
}

/** The fields of `TestAllTypes` that the tests name. */
function testAllTypes(name: string): Readonly<Record<string, CelType>> {
  const nested = struct(`${name}.NestedMessage`);
  return {
    single_int32: INT,
    single_int64: INT,
    single_value: DYN,
    single_struct: mapOf(STRING, DYN),
    single_int32_wrapper: wrapperOf(INT),
    single_int64_wrapper: wrapperOf(INT),
    single_uint32_wrapper: wrapperOf(UINT),
    single_uint64_wrapper: wrapperOf(UINT),
    single_float_wrapper: wrapperOf(DOUBLE),
    single_bool_wrapper: wrapperOf(BOOL),
    single_bytes_wrapper: wrapperOf(BYTES),
    single_double_wrapper: wrapperOf(DOUBLE),
    single_string_wrapper: wrapperOf(STRING),
    single_timestamp: TIMESTAMP,
    single_duration: DURATION,
    single_nested_message: nested,
    repeated_int32: listOf(INT),
    repeated_int64: listOf(INT),
    repeated_nested_message: listOf(nested),
    map_string_string: mapOf(STRING, STRING),
    map_int64_nested_type: mapOf(INT, struct('google.expr.proto3.test.NestedTestAllTypes')),
    nestedgroup: struct(`${name}.NestedGroup`),
  };
}

const PROTO2 = 'google.expr.proto2.test.TestAllTypes';
const PROTO3 = 'google.expr.proto3.test.TestAllTypes';

const MESSAGES: Readonly<Record<string, Readonly<Record<string, CelType>>>> = {
  [PROTO2]: testAllTypes(PROTO2),
  [PROTO3]: testAllTypes(PROTO3),
  [`${PROTO2}.NestedMessage`]: { bb: INT },
  [`${PROTO3}.NestedMessage`]: { bb: INT },
  [`${PROTO2}.NestedGroup`]: { nested_id: INT },
};

const PROTOBUF_TYPES: TypeProvider = {
  findStruct: (name) => (Object.hasOwn(MESSAGES, name) ? struct(name) : undefined),
  fieldType: (name, field) => {
    const fields = MESSAGES[name] ?? {};
    return Object.hasOwn(fields, field) ? fields[field] : undefined;
  },
  findConstant: (name) => (name === `${PROTO3}.NestedEnum.BAR` ? { type: INT, value: 1 } : undefined),
};
