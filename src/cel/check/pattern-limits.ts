import { MAX_PATTERN_SIZE, patternProblem, patternSize } from '../../go/index.ts';
import type { Expression } from '../model/ast.ts';
import { CelError } from '../model/errors.ts';
import { expressionsOf } from '../model/expression-tree.ts';
import type { CheckedExpression } from './checker.ts';

/** Functions whose last argument but for a number is a regular expression. */
const PATTERN_FUNCTIONS: ReadonlySet<string> = new Set(['matches', 'find', 'findAll']);

/**
 * Sizes of the regular expressions that an expression has as literals: the number of their instructions, at most. They are
 * compiled with the expression. API servers accept larger ones.
 * @throws CelError 'check-failed' if one, or all together, are larger than {@link MAX_PATTERN_SIZE}
 */
export function literalPatternSize({ expression, source }: CheckedExpression): number {
  let sum = 0;
  for (const { position: start, end, id, value } of patternsOf(expression)) {
    sum += patternSize(value);
    const problem =
      patternProblem(value) ??
      (sum > MAX_PATTERN_SIZE
        ? `expressions are too large together: expected at most ${MAX_PATTERN_SIZE} instructions, got up to ${sum}`
        : undefined);
    if (problem !== undefined) {
      const issue = source.issue(`regular ${problem}`, { start, end }, { expressionId: id });
      throw CelError.ofIssues('check-failed', [issue]);
    }
  }
  return sum;
}

type Literal = Extract<Expression, { kind: 'literal' }> & { readonly value: string };

function* patternsOf(root: Expression): Generator<Literal> {
  for (const node of expressionsOf(root)) {
    if (node.kind === 'call' && PATTERN_FUNCTIONS.has(node.function)) {
      const literal = node.args.findLast((argument): argument is Literal => isText(argument));
      if (literal !== undefined) {
        yield literal;
      }
    }
  }
}

function isText(node: Expression): node is Literal {
  return node.kind === 'literal' && typeof node.value === 'string';
}
