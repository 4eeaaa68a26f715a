import {
  ADMISSION_REQUEST,
  ADMISSION_REQUEST_STRUCTS,
  AUTHORIZER,
  Cancellation,
  CelError,
  createEnvironment,
  DYN,
  EvaluationFailure,
  EXPRESSION_COST_LIMIT,
  MATCH_CONDITIONS_COST_BUDGET,
  RESOURCE_CHECK,
  struct,
} from '../../cel/index.ts';
import type { Bindings, Environment, Program } from '../../cel/index.ts';
import type { MatchCondition } from '../policies/policy-match.ts';

/** Whether a webhook matches, or why that cannot be determined. */
export type MatchResult =
  | { readonly matches: true }
  /** `condition` is the name of the first that is false; undefined: one failed, and failures are ignored. */
  | { readonly matches: false; readonly condition?: string }
  | { readonly error: string };

/** A map, because expressions may use any names. */
const STRUCTS = new Map(Object.entries(ADMISSION_REQUEST_STRUCTS));

/** Length of all match conditions of a policy together, in characters: some 0.1 s to compile. */
const MAX_CONDITIONS_LENGTH = 65_536;

/** What is wrong with the length of the match conditions of a policy, before they are parsed. */
export function conditionsProblem(conditions: readonly MatchCondition[]): string | undefined {
  const length = conditions.reduce((sum, { expression }) => sum + expression.length, 0);
  return length <= MAX_CONDITIONS_LENGTH
    ? undefined
    : `expected at most ${MAX_CONDITIONS_LENGTH} characters in all match conditions of a policy, got ${length}`;
}

type Compiled = { readonly program: Program } | { readonly error: string };

/** Evaluates match conditions of webhooks. Expressions are compiled on first use. */
export class MatchConditionEvaluator {
  readonly #problemOf: (conditions: readonly MatchCondition[]) => string | undefined;
  #environment: Environment | undefined;
  /** By the webhook's list of conditions, which is a new list after a change. */
  readonly #compiled = new WeakMap<readonly MatchCondition[], readonly Compiled[]>();

  /** @param problemOf conditions that it objects to are not compiled, and fail. Default: all are compiled, as in API servers */
  constructor(problemOf: (conditions: readonly MatchCondition[]) => string | undefined = () => undefined) {
    this.#problemOf = problemOf;
  }

  /**
   * A condition that is false excludes the request, even if others fail. Otherwise a failed condition is an error, or
   * excludes the request with `ignoresFailures`. Costs are limited as in API servers.
   */
  check(conditions: readonly MatchCondition[], ignoresFailures: boolean, bindings: Bindings): MatchResult {
    const errors = new Set<string>();
    const failed = (error: string): MatchResult => (ignoresFailures ? { matches: false } : { error });
    let remaining = MATCH_CONDITIONS_COST_BUDGET;
    let excludedBy: string | undefined;
    for (const [index, compiled] of this.#programs(conditions).entries()) {
      if ('error' in compiled) {
        errors.add(compiled.error);
        continue;
      }
      const { value, cost } = compiled.program.run(bindings, { budget: EXPRESSION_COST_LIMIT });
      remaining -= cost;
      if (remaining < 0) {
        return failed('validation failed due to running out of cost budget, no further validation rules will be run');
      }
      if (value instanceof EvaluationFailure || value instanceof Cancellation) {
        errors.add(`expression '${conditions[index]?.expression ?? ''}' resulted in error: ${value.message}`);
      } else if (value === false) {
        excludedBy ??= conditions[index]?.name ?? '';
      }
    }
    if (excludedBy !== undefined) {
      return { matches: false, condition: excludedBy };
    }
    if (errors.size === 0) {
      return { matches: true };
    }
    const texts = [...errors];
    return failed(texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`);
  }

  #programs(conditions: readonly MatchCondition[]): readonly Compiled[] {
    const known = this.#compiled.get(conditions);
    if (known !== undefined) {
      return known;
    }
    const problem = this.#problemOf(conditions);
    const compiled =
      problem === undefined ? conditions.map(({ expression }) => this.#compile(expression)) : [{ error: problem }];
    this.#compiled.set(conditions, compiled);
    return compiled;
  }

  #compile(expression: string): Compiled {
    try {
      this.#environment ??= matchConditionEnvironment();
      return { program: this.#environment.compile(expression) };
    } catch (error) {
      if (error instanceof CelError) {
        return { error: `compilation error: ${error.message}` };
      }
      throw error;
    }
  }
}

/** The CEL environment of match conditions. */
export function matchConditionEnvironment(): Environment {
  return createEnvironment({
    variables: {
      object: DYN,
      oldObject: DYN,
      // Declared by API servers, and always null for webhooks.
      namespaceObject: DYN,
      request: struct(ADMISSION_REQUEST),
      authorizer: AUTHORIZER,
      'authorizer.requestResource': RESOURCE_CHECK,
    },
    types: {
      findStruct: (name) => (STRUCTS.has(name) ? struct(name) : undefined),
      fieldType: (name, field) => {
        const fields = STRUCTS.get(name);
        return fields !== undefined && Object.hasOwn(fields, field) ? fields[field] : undefined;
      },
      fieldNames: (name) => Object.keys(STRUCTS.get(name) ?? {}),
    },
  });
}
