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
    (result, value, index) =>
      macro.comprehension({
        range: macro.list(),
        variable: '#unused',
        secondVariable: undefined,
        accumulator: `@index:${index}`,
        initial: value,
        condition: macro.literal(false),
        step: macro.name(`@index:${index}`),
        result,
      }),
    macro.argument(1),
  );
}

/** `cel.block` and what goes with it: what optimisers write. Only the specification's tests need them. */
export const BLOCK_MACROS: readonly Macro[] = [
  onCel('block', 2, block),
  onCel('index', 1, (macro) => numbered(macro, '@index')),
  onCel('iterVar', 2, (macro) => numbered(macro, '@it')),
  onCel('accuVar', 2, (macro) => numbered(macro, '@ac')),
];
