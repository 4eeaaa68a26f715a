import { Cancellation, EvaluationFailure, EXPRESSION_COST_LIMIT, LazyStruct } from '../../cel/index.ts';
import type { Bindings, CelValue, CelEvaluation } from '../../cel/index.ts';
import type { PolicyExpression, CompiledPolicy } from './compiled-policy.ts';
import { VARIABLES_TYPE } from './policy-environment.ts';

/** Variables of expressions during one evaluation. */
export interface Activation {
  readonly object: CelValue;
  readonly oldObject: CelValue;
  readonly request: CelValue;
  readonly namespaceObject: CelValue;
  /** Null when the policy has a paramKind but no parameter; unused without a paramKind. */
  readonly params: CelValue;
  /** Absent where expressions must not use it. */
  readonly authorizer?: CelValue;
  readonly requestResource?: CelValue;
}

/** Result of one expression. */
export type ExpressionResult = { readonly value: CelValue } | { readonly error: string };

/** Expressions exceeded their common cost budget. The message is that of API servers. */
export class OutOfBudget extends Error {
  constructor() {
    super('validation failed due to running out of cost budget, no further validation rules will be run');
  }
}

/**
 * Expressions with a common cost budget and common variables, which are computed on first use and counted once. API
 * servers use one run for match conditions, one for validations, one for messages and one for annotations.
 */
export class ExpressionRun {
  readonly #bindings: Bindings;
  #remaining: number;
  /** Cost of variables since the last expression. */
  #variablesCost = 0;

  constructor(policy: CompiledPolicy, activation: Activation, budget: number) {
    this.#remaining = budget;
    const { authorizer, requestResource, ...rest } = activation;
    const bindings: Record<string, CelValue> = { ...rest };
    if (authorizer !== undefined && requestResource !== undefined) {
      bindings.authorizer = authorizer;
      bindings['authorizer.requestResource'] = requestResource;
    }
    if (policy.variables.size > 0) {
      bindings.variables = this.#variables(policy);
    }
    this.#bindings = bindings;
  }

  /** Remaining budget. */
  get remaining(): number {
    return this.#remaining;
  }

  /** Throws {@link OutOfBudget}. */
  evaluate({ program, text }: PolicyExpression): ExpressionResult {
    const { value, cost } = program.run(this.#bindings, { budget: EXPRESSION_COST_LIMIT });
    const variables = this.#variablesCost;
    this.#variablesCost = 0;
    this.#spend(variables);
    this.#spend(cost);
    const error = errorOf(value);
    return error === undefined
      ? { value: value as CelValue }
      : { error: `expression '${text}' resulted in error: ${error}` };
  }

  #spend(cost: number): void {
    if (cost > this.#remaining) {
      throw new OutOfBudget();
    }
    this.#remaining -= cost;
  }

  #variables(policy: CompiledPolicy): CelValue {
    const variables = new LazyStruct(VARIABLES_TYPE);
    for (const [name, program] of policy.variables) {
      variables.define(name, () => {
        const { value, cost } = program.run(this.#bindings, { budget: EXPRESSION_COST_LIMIT });
        this.#variablesCost += cost;
        const error = errorOf(value);
        return error === undefined
          ? (value as CelValue)
          : new EvaluationFailure(`composited variable ${JSON.stringify(name)} fails to evaluate: ${error}`);
      });
    }
    return variables;
  }
}

function errorOf(value: CelEvaluation['value']): string | undefined {
  return value instanceof EvaluationFailure || value instanceof Cancellation ? value.message : undefined;
}
