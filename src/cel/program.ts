import { estimateCost } from './check/index.ts';
import type { CheckedExpression, SizeEstimator } from './check/index.ts';
import { CelError } from './model/errors.ts';
import { findExpression } from './model/expression-tree.ts';
import type { Bindings, CompiledExpression, CelEvaluateOptions, CelEvaluation } from './evaluate/index.ts';
import { Cancellation } from './evaluate/index.ts';
import type { Range } from './model/library.ts';
import type { CelType } from './model/type.ts';
import { EvaluationFailure } from './model/value.ts';
import type { CelValue } from './model/value.ts';

/** A value and the cost of its evaluation. */
interface ProgramResult {
  readonly value: CelValue;
  readonly cost: number;
}

interface ProgramParts {
  readonly checked: CheckedExpression;
  readonly compiled: CompiledExpression;
  readonly patternSize: number;
  readonly sizes: SizeEstimator | undefined;
}

/** `has(…)` costs nothing in API servers. */
const PRESENCE_TEST_COST = 0;

/** A compiled expression. It belongs to one thread and can be evaluated any number of times. */
export class Program {
  readonly checked: CheckedExpression;
  /** Instructions of the regular expressions that it has as literals, at most. */
  readonly patternSize: number;
  readonly #compiled: CompiledExpression;
  readonly #sizes: SizeEstimator | undefined;
  #estimate: Range | undefined;

  constructor({ checked, compiled, patternSize, sizes }: ProgramParts) {
    this.checked = checked;
    this.patternSize = patternSize;
    this.#compiled = compiled;
    this.#sizes = sizes;
  }

  /** The source text. */
  get text(): string {
    return this.checked.source.text;
  }

  /** The result type; `dyn` if it is known only at run time. */
  get resultType(): CelType {
    return this.checked.resultType;
  }

  /** Bounds of the evaluation cost, as API servers estimate it; Infinity if a size is unbounded. */
  get estimate(): Range {
    this.#estimate ??= estimateCost(this.checked, { sizes: this.#sizes, presenceTestCost: PRESENCE_TEST_COST });
    return this.#estimate;
  }

  /** Evaluates the expression. Never throws: a failure is returned as the value. */
  run(bindings: Bindings, options: CelEvaluateOptions): CelEvaluation {
    return this.#compiled.evaluate(bindings, options);
  }

  /**
   * Evaluates the expression.
   * @throws CelError 'evaluation-failed' (with the position as its issue) or 'cost-exceeded'
   */
  evaluate(bindings: Bindings, options: CelEvaluateOptions): ProgramResult {
    const { value, cost } = this.run(bindings, options);
    if (value instanceof Cancellation) {
      throw new CelError(value.code, value.message);
    }
    if (value instanceof EvaluationFailure) {
      throw this.errorOf(value);
    }
    return { value, cost };
  }

  /** Converts a failure of {@link run} to an error with a position and the same message. */
  errorOf(failure: EvaluationFailure): CelError {
    const { expressionId } = failure;
    const node =
      expressionId === undefined ? undefined : findExpression(this.checked.expression, ({ id }) => id === expressionId);
    if (node === undefined) {
      return new CelError('evaluation-failed', failure.message);
    }
    const range = { start: node.position, end: node.end };
    const issue = this.checked.source.issue(failure.message, range, { expressionId });
    return new CelError('evaluation-failed', failure.message, { issues: [issue] });
  }
}
