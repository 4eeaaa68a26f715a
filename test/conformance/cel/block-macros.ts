import type { Expression } from '../../../src/cel/model/ast.ts';
import type { Macro } from '../../../src/cel/syntax/index.ts';

type MacroExpansion = Parameters<Macro['expand']>[0];

function onCel(name: string, argumentCount: number, expand: (macro: MacroExpansion) => Expression | undefined): Macro {
  const isOnCel = ({ target }: MacroExpansion): boolean => target.kind === 'identifier' && target.name === 'cel';
  return { name, isMember: true, argumentCount, expand: (macro) => (isOnCel(macro) ? expand(macro) : undefined) };
}

/** A name made of numbers that no expression can spell. */
function numbered(macro: MacroExpansion, prefix: string): Expression {
  const numbers = macro.call.args.map((argument) => (argument.kind === 'literal' ? Number(argument.value) : -1));
  return macro.name([prefix, ...numbers].join(':'));
}

/** Binds values to names one after the other: each may use those before it. */
function block(macro: MacroExpansion): Expression | undefined {
  const values = macro.argument(0);
  if (values.kind !== 'list') {
    return undefined;
  }
  return values.elements.reduceRight(
    (result, value, index) => bind(macro, `@index:${index}`, value, result),
    macro.argument(1),
  );
}

/** Binds a value to a name for one expression: a loop that never runs. */
function bind(macro: MacroExpansion, accumulator: string, initial: Expression, result: Expression): Expression {
  return macro.comprehension({
    range: macro.list(),
    variable: '#unused',
    secondVariable: undefined,
    accumulator,
    initial,
    condition: macro.literal(false),
    step: macro.name(accumulator),
    result,
  });
}

/** `cel.bind`, and `cel.block` with what goes with it: what optimisers write. API servers have none of them. */
export const BLOCK_MACROS: readonly Macro[] = [
  onCel('bind', 3, (macro) => {
    const name = macro.identifier(0, 'cel.bind() variable names must be simple identifiers');
    return name === undefined ? macro.literal(null) : bind(macro, name, macro.argument(1), macro.argument(2));
  }),
  onCel('block', 2, block),
  onCel('index', 1, (macro) => numbered(macro, '@index')),
  onCel('iterVar', 2, (macro) => numbered(macro, '@it')),
  onCel('accuVar', 2, (macro) => numbered(macro, '@ac')),
];
