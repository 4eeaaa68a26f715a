import type { Expression } from '../model/ast.ts';
import type { Macro, MacroExpansion } from './macro.ts';
import { ACCUMULATOR, Operator, UNUSED_VARIABLE } from './operators.ts';
import { collect, iterationVariables, mapOver, quantifierMacros, whereTrue } from './standard-macros.ts';

const NOT_A_NAME = 'argument must be a simple name';

/** `all`, `exists`, `existsOne`, `transformList`, `transformMap` and `transformMapEntry` with two variables. */
export const TWO_VARIABLE_MACROS: readonly Macro[] = [
  ...quantifierMacros(3, 2, NOT_A_NAME),
  ...transformMacros('transformList', (macro, names, filter, element) =>
    collect(macro, macro.target, { ...names, filter, element }),
  ),
  ...transformMacros('transformMap', (macro, names, filter, value) =>
    insertEach(macro, names, filter, [macro.name(names.variable), value]),
  ),
  ...transformMacros('transformMapEntry', (macro, names, filter, entry) => insertEach(macro, names, filter, [entry])),
];

interface VariableNames {
  readonly variable: string;
  readonly secondVariable: string | undefined;
}

function transformMacros(
  name: string,
  expand: (
    macro: MacroExpansion,
    names: VariableNames,
    filter: Expression | undefined,
    transform: Expression,
  ) => Expression,
): readonly Macro[] {
  return [3, 4].map((argumentCount) => ({
    name,
    isMember: true,
    argumentCount,
    expand: (macro: MacroExpansion) => {
      const names = iterationVariables(macro, 2, NOT_A_NAME);
      if (names === undefined) {
        return macro.literal(null);
      }
      const filter = argumentCount === 4 ? macro.argument(2) : undefined;
      return expand(macro, names, filter, macro.argument(argumentCount - 1));
    },
  }));
}

function insertEach(
  macro: MacroExpansion,
  names: VariableNames,
  filter: Expression | undefined,
  inserted: readonly Expression[],
): Expression {
  const insert = macro.functionCall('cel.@mapInsert', macro.accumulator(), ...inserted);
  return macro.comprehension({
    range: macro.target,
    ...names,
    accumulator: ACCUMULATOR,
    initial: macro.emptyMap(),
    condition: macro.literal(true),
    step: whereTrue(macro, filter, insert),
    result: macro.accumulator(),
  });
}

/** Binds a name to a value for one expression: a comprehension whose loop never runs. */
function bind(macro: MacroExpansion, name: string, value: Expression, result: Expression): Expression {
  return macro.comprehension({
    range: macro.list(),
    variable: UNUSED_VARIABLE,
    secondVariable: undefined,
    accumulator: name,
    initial: value,
    condition: macro.literal(false),
    step: macro.name(name),
    result,
  });
}

/** `optMap`, from version 1 of optional types. */
export const OPTIONAL_MACROS: readonly Macro[] = [
  optionalMacro('optMap', (macro, bound) => macro.functionCall('optional.of', bound)),
];

/** `optFlatMap`, from version 2 of optional types. */
export const OPTIONAL_FLAT_MACROS: readonly Macro[] = [optionalMacro('optFlatMap', (_macro, bound) => bound)];

function optionalMacro(name: string, wrap: (macro: MacroExpansion, bound: Expression) => Expression): Macro {
  return {
    name,
    isMember: true,
    argumentCount: 2,
    expand: (macro) => {
      const variable = macro.identifier(0, `${name}() variable name must be a simple identifier`);
      if (variable === undefined) {
        return macro.literal(null);
      }
      const value = macro.memberCall('value', macro.copy(macro.target));
      return macro.functionCall(
        Operator.Conditional,
        macro.memberCall('hasValue', macro.target),
        wrap(macro, bind(macro, variable, value, macro.argument(1))),
        macro.functionCall('optional.none'),
      );
    },
  };
}

const SORT_INPUT = '@__sortBy_input__';

/** `sortBy` of the lists library. */
export const LIST_MACROS: readonly Macro[] = [
  {
    name: 'sortBy',
    isMember: true,
    argumentCount: 2,
    expand: (macro) => {
      if (macro.target.kind === 'literal' || macro.target.kind === 'map' || macro.target.kind === 'struct') {
        const message = 'sortBy can only be applied to a list, identifier, comprehension, call or select expression';
        return macro.fail(message, macro.target);
      }
      const keys = mapOver(macro, macro.name(SORT_INPUT), undefined, macro.argument(1));
      const sorted = macro.memberCall('@sortByAssociatedKeys', macro.name(SORT_INPUT), keys);
      return bind(macro, SORT_INPUT, macro.target, sorted);
    },
  },
];
