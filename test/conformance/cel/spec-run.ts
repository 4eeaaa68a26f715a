import { check, Declarations, formatType } from '../../../src/cel/check/index.ts';
import { CelError } from '../../../src/cel/model/errors.ts';
import {
  Cancellation,
  COMPREHENSION_LIBRARY,
  compileExpression,
  equalValues,
  OPTIONAL_LIBRARY,
  standardLibrary,
  typeNameOf,
} from '../../../src/cel/evaluate/index.ts';
import type { CompileInput } from '../../../src/cel/evaluate/index.ts';
import { KUBERNETES_LIBRARIES } from '../../../src/cel/libraries/index.ts';
import type { FunctionDeclaration, Library, Overload } from '../../../src/cel/model/library.ts';
import {
  MacroSet,
  OPTIONAL_FLAT_MACROS,
  OPTIONAL_MACROS,
  parse,
  STANDARD_MACROS,
  TWO_VARIABLE_MACROS,
} from '../../../src/cel/syntax/index.ts';
import { DYN } from '../../../src/cel/model/type.ts';
import { EvaluationFailure } from '../../../src/cel/model/value.ts';
import type { CelResult, CelValue } from '../../../src/cel/model/value.ts';
import { BLOCK_MACROS } from './block-macros.ts';
import { showValue } from './show-value.ts';
import type { SpecCase } from './spec-case.ts';

const PARSING = {
  macros: new MacroSet([
    ...STANDARD_MACROS,
    ...OPTIONAL_MACROS,
    ...OPTIONAL_FLAT_MACROS,
    ...TWO_VARIABLE_MACROS,
    ...BLOCK_MACROS,
  ]),
  optionalSyntax: true,
  escapedIdentifiers: true,
};

const LIBRARIES: readonly Library[] = [
  standardLibrary(),
  OPTIONAL_LIBRARY,
  COMPREHENSION_LIBRARY,
  ...KUBERNETES_LIBRARIES.filter(({ name }) => name === 'Strings'),
];

/** Runs a case. Undefined: as the specification wants it; otherwise what is different. */
export function runSpecCase(test: SpecCase): string | undefined {
  try {
    return difference(test, evaluate(test));
  } catch (error) {
    if (!(error instanceof CelError)) {
      throw error;
    }
    return test.fails ? undefined : error.message;
  }
}

type Outcome = CelResult | Cancellation | { readonly wrongType: string } | undefined;

function evaluate(test: SpecCase): Outcome {
  const input = compileInput(test);
  if (typeof input === 'string') {
    return { wrongType: input };
  }
  return test.isCheckOnly
    ? undefined
    : compileExpression(input).evaluate(test.bindings, { budget: Number.POSITIVE_INFINITY }).value;
}

function compileInput(test: SpecCase): CompileInput | string {
  const libraries = [...LIBRARIES, declaredBy(test)];
  const undeclared = Object.fromEntries(Object.keys(test.bindings).map((name) => [name, DYN]));
  const declarations = new Declarations({ libraries, variables: { ...undeclared, ...test.variables } });
  const { expression, overloads, meanings, resultType } = check(parse(test.expression, PARSING), declarations);
  if (test.type !== undefined && formatType(resultType) !== formatType(test.type)) {
    return formatType(resultType);
  }
  return { expression, overloads, meanings, functions: functionsOf(libraries) };
}

/** Functions that a case declares; none of them is called. */
function declaredBy({ functions }: SpecCase): Library {
  const declarations = Map.groupBy(functions, ({ name }) => name)
    .entries()
    .map(([name, overloads]): FunctionDeclaration => ({
      name,
      overloads: overloads.map(({ id, parameters, result }) => ({
        id,
        isMember: false,
        parameters,
        result,
        call: () => null,
      })),
    }));
  return { name: 'declared', since: undefined, functions: [...declarations] };
}

function functionsOf(libraries: readonly Library[]): ReadonlyMap<string, readonly Overload[]> {
  const functions = new Map<string, readonly Overload[]>();
  for (const { name, overloads } of libraries.flatMap((library) => library.functions)) {
    functions.set(name, [...(functions.get(name) ?? []), ...overloads]);
  }
  return functions;
}

function difference(test: SpecCase, outcome: Outcome): string | undefined {
  const { fails, expected, type } = test;
  if (outcome === undefined) {
    return undefined;
  }
  if (isWrongType(outcome)) {
    return `expected the type ${type === undefined ? '' : formatType(type)}, got ${outcome.wrongType}`;
  }
  if (outcome instanceof EvaluationFailure || outcome instanceof Cancellation) {
    return fails ? undefined : outcome.message;
  }
  if (fails) {
    return `expected a failure, got ${showValue(outcome)}`;
  }
  return expected === undefined || isSame(outcome, expected)
    ? undefined
    : `expected ${showValue(expected)}, got ${showValue(outcome)}`;
}

function isWrongType(outcome: Outcome): outcome is { readonly wrongType: string } {
  return typeof outcome === 'object' && outcome !== null && Object.hasOwn(outcome, 'wrongType');
}

/** Whether values are equal and of one type; not a number is the same as itself here. */
function isSame(value: CelValue, expected: CelValue): boolean {
  const isEqual = equalValues(value, expected) || showValue(value) === showValue(expected);
  return isEqual && typeNameOf(value) === typeNameOf(expected);
}
