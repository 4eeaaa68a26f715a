import type { Expression } from '../model/ast.ts';
import type { Macro, MacroExpansion } from './macro.ts';
import { ACCUMULATOR, Operator } from './operators.ts';

const NOT_A_NAME = 'argument must be a simple name';
const NOT_AN_IDENTIFIER = 'argument is not an identifier';

/** The macros of the language: `has`, `all`, `exists`, `exists_one`, `existsOne`, `map` and `filter`. */
export const STANDARD_MACROS: readonly Macro[] = [
  { name: 'has', isMember: false, argumentCount: 1, expand: expandHas },
  ...quantifierMacros(2, 1, NOT_A_NAME),
  { name: 'map', isMember: true, argumentCount: 2, expand: expandMap },
  { name: 'map', isMember: true, argumentCount: 3, expand: expandMap },
  { name: 'filter', isMember: true, argumentCount: 2, expand: expandFilter },
];

function expandHas(macro: MacroExpansion): Expression {
  const argument = macro.argument(0);
  return argument.kind === 'select'
    ? macro.presenceTest(argument.operand, argument.field)
    : macro.fail('invalid argument to has() macro', argument, hasHints(argument));
}

/** Keys with `-`, `.` and `/` are no fields: they are looked up in their map. */
function hasHints(argument: Expression): readonly string[] {
  const isKey = argument.kind === 'call' && ['_[_]', '_-_', '_/_'].includes(argument.function);
  return isKey ? ["has() takes a field, has(a.b): of a key in a map, write 'key' in a.b"] : [];
}

/** The quantifiers with `argumentCount` arguments, of which the first `variables` are iteration variables. */
export function quantifierMacros(argumentCount: number, variables: 1 | 2, message: string): readonly Macro[] {
  const quantifier = (name: string, loop: (macro: MacroExpansion, predicate: Expression) => Loop): Macro => ({
    name,
    isMember: true,
    argumentCount,
    expand: (macro) => {
      const names = iterationVariables(macro, variables, message);
      if (names === undefined) {
        return macro.literal(null);
      }
      const { initial, condition, step, result } = loop(macro, macro.argument(variables));
      return macro.comprehension({
        range: macro.target,
        ...names,
        accumulator: ACCUMULATOR,
        initial,
        condition,
        step,
        result,
      });
    },
  });
  return [
    quantifier('all', loopOfAll),
    quantifier('exists', loopOfExists),
    quantifier('exists_one', loopOfExistsOne),
    quantifier('existsOne', loopOfExistsOne),
  ];
}

/** The iteration variables of a macro; undefined after an error. */
export function iterationVariables(
  macro: MacroExpansion,
  count: 1 | 2,
  message: string,
): { readonly variable: string; readonly secondVariable: string | undefined } | undefined {
  const variable = macro.variable(0, message);
  const secondVariable = count === 2 ? macro.variable(1, message) : undefined;
  if (variable === undefined || (count === 2 && secondVariable === undefined)) {
    return undefined;
  }
  if (variable === secondVariable) {
    macro.fail(`duplicate variable name: ${variable}`, macro.argument(1));
    return undefined;
  }
  return { variable, secondVariable };
}

interface Loop {
  readonly initial: Expression;
  readonly condition: Expression;
  readonly step: Expression;
  readonly result: Expression;
}

function loopOfAll(macro: MacroExpansion, predicate: Expression): Loop {
  return {
    initial: macro.literal(true),
    condition: macro.functionCall(Operator.NotStrictlyFalse, macro.accumulator()),
    step: macro.functionCall(Operator.LogicalAnd, macro.accumulator(), predicate),
    result: macro.accumulator(),
  };
}

function loopOfExists(macro: MacroExpansion, predicate: Expression): Loop {
  const isNotFoundYet = macro.functionCall(Operator.LogicalNot, macro.accumulator());
  return {
    initial: macro.literal(false),
    condition: macro.functionCall(Operator.NotStrictlyFalse, isNotFoundYet),
    step: macro.functionCall(Operator.LogicalOr, macro.accumulator(), predicate),
    result: macro.accumulator(),
  };
}

function loopOfExistsOne(macro: MacroExpansion, predicate: Expression): Loop {
  const countOneMore = macro.functionCall(Operator.Add, macro.accumulator(), macro.literal(1));
  return {
    initial: macro.literal(0),
    condition: macro.literal(true),
    step: macro.functionCall(Operator.Conditional, predicate, countOneMore, macro.accumulator()),
    result: macro.functionCall(Operator.Equals, macro.accumulator(), macro.literal(1)),
  };
}

function expandMap(macro: MacroExpansion): Expression {
  const hasFilter = macro.call.args.length === 3;
  return mapOver(macro, macro.target, hasFilter ? macro.argument(1) : undefined, macro.argument(hasFilter ? 2 : 1));
}

/** `range.map(variable, element)`, where the variable is the macro's first argument. */
export function mapOver(
  macro: MacroExpansion,
  range: Expression,
  filter: Expression | undefined,
  element: Expression,
): Expression {
  const variable = macro.variable(0, NOT_AN_IDENTIFIER);
  return variable === undefined ? macro.literal(null) : collect(macro, range, { variable, filter, element });
}

function expandFilter(macro: MacroExpansion): Expression {
  const variable = macro.variable(0, NOT_AN_IDENTIFIER);
  if (variable === undefined) {
    return macro.literal(null);
  }
  return collect(macro, macro.target, { variable, filter: macro.argument(1), element: macro.argument(0) });
}

/** Appends an element for each item of the range that passes the filter. */
export function collect(
  macro: MacroExpansion,
  range: Expression,
  options: {
    readonly variable: string;
    readonly secondVariable?: string | undefined;
    readonly filter: Expression | undefined;
    readonly element: Expression;
  },
): Expression {
  const append = macro.functionCall(Operator.Add, macro.accumulator(), macro.list(options.element));
  return macro.comprehension({
    range,
    variable: options.variable,
    secondVariable: options.secondVariable,
    accumulator: ACCUMULATOR,
    initial: macro.list(),
    condition: macro.literal(true),
    step: whereTrue(macro, options.filter, append),
    result: macro.accumulator(),
  });
}

/** The step if the filter holds, otherwise the unchanged accumulator. */
export function whereTrue(macro: MacroExpansion, filter: Expression | undefined, step: Expression): Expression {
  return filter === undefined ? step : macro.functionCall(Operator.Conditional, filter, step, macro.accumulator());
}
