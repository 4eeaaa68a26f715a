import type { CallExpression, ComprehensionExpression, Expression } from '../ast.ts';
import { CelError } from '../errors.ts';
import { MacroSet, Operator, parse, STANDARD_MACROS } from '../syntax/index.ts';
import type { ParseOptions } from '../syntax/index.ts';
import { BOUNDED_FUNCTIONS } from './functions.ts';

/** An expression of the part of the language that {@link BoundedEvaluation} knows. */
export interface BoundedExpression {
  readonly expression: Expression;
}

/** How deep expressions may nest. What people write nests ten deep at the most. */
const MAX_BOUNDED_NESTING = 32;
/** Nodes of one expression, those that macros make among them. */
const MAX_BOUNDED_NODES = 1_000;

/** Operators that do not look at all their operands. */
const CHOOSING: ReadonlySet<string> = new Set([Operator.LogicalAnd, Operator.LogicalOr, Operator.Conditional]);
/** The macros that loop. */
const LOOPS: ReadonlySet<string> = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);
const PARSE_OPTIONS: ParseOptions = {
  // None of them copies what it is called on: an expression has as many nodes as its text is long.
  macros: new MacroSet(STANDARD_MACROS.filter(({ name }) => name === 'has' || LOOPS.has(name))),
  optionalSyntax: false,
  escapedIdentifiers: false,
  maxNesting: MAX_BOUNDED_NESTING,
  // Whoever wrote it was told by others what is wrong, or will be.
  maxIssues: 1,
};

/**
 * Parses an expression that is known to compile; undefined when it is not of the part of the language that is evaluated with a
 * bound. `names`: what it may look at; `variables`: what `variables` has for it.
 */
export function parseBounded(
  text: string,
  names: ReadonlySet<string>,
  variables: ReadonlyMap<string, BoundedExpression>,
): BoundedExpression | undefined {
  try {
    const { expression, nodeCount } = parse(text, PARSE_OPTIONS);
    const isBounded = nodeCount <= MAX_BOUNDED_NODES && new Reader(names, variables).isBounded(expression);
    return isBounded ? { expression } : undefined;
  } catch (error) {
    if (error instanceof CelError) {
      return undefined;
    }
    throw error;
  }
}

/** Looks whether an expression has nothing but what is evaluated with a bound. */
class Reader {
  readonly #names: ReadonlySet<string>;
  readonly #variables: ReadonlyMap<string, BoundedExpression>;
  /** Variables of the loops around. */
  readonly #locals: string[] = [];

  constructor(names: ReadonlySet<string>, variables: ReadonlyMap<string, BoundedExpression>) {
    this.#names = names;
    this.#variables = variables;
  }

  isBounded(expression: Expression): boolean {
    switch (expression.kind) {
      case 'literal':
        return !(expression.value instanceof Uint8Array);
      case 'identifier':
        return this.#locals.includes(expression.name) || this.#names.has(expression.name);
      case 'select': {
        const { operand, field, isTest } = expression;
        return this.#isVariables(operand) ? !isTest && this.#variables.has(field) : this.isBounded(operand);
      }
      case 'call':
        return this.#isBoundedCall(expression);
      case 'list':
        return expression.elements.every((element) => this.isBounded(element));
      case 'comprehension':
        return this.#isBoundedLoop(expression);
      default:
        return false;
    }
  }

  #isVariables(operand: Expression): boolean {
    return operand.kind === 'identifier' && operand.name === 'variables' && !this.#locals.includes('variables');
  }

  #isBoundedCall({ function: name, target, args }: CallExpression): boolean {
    const operands = target === undefined ? args : [target, ...args];
    // A function of a library may have the same name, and a prefix that reads like what it would be called on.
    const isKnown = CHOOSING.has(name) || BOUNDED_FUNCTIONS.get(name)?.operands === operands.length;
    return isKnown && operands.every((operand) => this.isBounded(operand));
  }

  #isBoundedLoop({ range, variable, macro }: ComprehensionExpression): boolean {
    if (!LOOPS.has(macro.name) || !this.isBounded(range)) {
      return false;
    }
    this.#locals.push(variable);
    const isBounded = macro.args.slice(1).every((argument) => this.isBounded(argument));
    this.#locals.pop();
    return isBounded;
  }
}
