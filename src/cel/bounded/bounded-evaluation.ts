// Expressions of people who may be hostile, where nobody can end what takes too long: an evaluation of which every step counts.
//
// What the language's own evaluation does is counted step by step as well, but by each function and macro for itself, and one that
// forgets to costs others their time. Here whatever is done passes one of two doors: `#value` counts a unit for each node, each time,
// and functions are called by it only, with the units that they say they work at the most. So an evaluation takes no longer than its
// units, whatever is written in it. The price is the smaller language; what is beyond it is for others to find out.
import type { CallExpression, ComprehensionExpression, Expression, SelectExpression } from '../ast.ts';
import { Cancellation, Frame, isList, isRecord } from '../evaluate/index.ts';
import { Operator } from '../syntax/index.ts';
import { EvaluationFailure } from '../value.ts';
import type { CelResult, CelValue, WorkMeter } from '../value.ts';
import type { BoundedExpression } from './bounded-expression.ts';
import { Beyond, BOUNDED_FUNCTIONS, FAILED, fieldOf, keysOf } from './functions.ts';

/**
 * Units of work of one evaluation. No unit costs more than 16 as API servers count costs, so that whatever is evaluated here is
 * within what an expression may cost.
 */
export const MAX_BOUNDED_WORK = 20_000;
/** Nodes within nodes, those of variables that others look at among them. */
const MAX_DEPTH = 128;

/** A variable of a loop, and those around it. */
interface Local {
  readonly name: string;
  readonly value: CelValue;
  readonly outer: Local | undefined;
}

/** What expressions look at. */
export interface BoundedNames {
  /** Values by name. Each is JSON, as `parseJson` reads it. */
  readonly bindings: ReadonlyMap<string, CelValue>;
  /** What `variables` has: evaluated when one is first looked at. */
  readonly variables: ReadonlyMap<string, BoundedExpression>;
}

/** Evaluates expressions that look at the same, and have their work in common. Obeys `withInterrupt`. */
export class BoundedEvaluation implements WorkMeter {
  readonly #bindings: BoundedNames['bindings'];
  readonly #variables: BoundedNames['variables'];
  readonly #computed = new Map<string, CelResult>();
  readonly #frame = new Frame(0);
  #worked = 0;
  #depth = 0;

  constructor({ bindings, variables }: BoundedNames) {
    this.#bindings = bindings;
    this.#variables = variables;
    this.#frame.begin(Infinity, undefined);
  }

  /** Units of work so far. */
  get worked(): number {
    return this.#worked;
  }

  /**
   * The value of an expression, the same that the language's own evaluation gives, or that it fails, but not by what. Undefined where
   * this one does not know what it does, would work too much, or was interrupted.
   */
  evaluate({ expression }: BoundedExpression): CelResult | undefined {
    this.#depth = 0;
    try {
      return this.#value(expression, undefined);
    } catch (error) {
      if (error instanceof Beyond || error instanceof Cancellation) {
        return undefined;
      }
      throw error;
    }
  }

  /** Counts work. @throws Cancellation */
  work(units: number): void {
    this.#worked += units;
    this.#frame.work(units);
    if (this.#worked > MAX_BOUNDED_WORK) {
      throw new Beyond();
    }
  }

  #value(expression: Expression, locals: Local | undefined): CelResult {
    this.work(1);
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) {
      throw new Beyond();
    }
    const value = this.#valueOf(expression, locals);
    this.#depth -= 1;
    return value;
  }

  #valueOf(expression: Expression, locals: Local | undefined): CelResult {
    switch (expression.kind) {
      case 'literal':
        return expression.value;
      case 'identifier':
        return this.#named(expression.name, locals);
      case 'select':
        return this.#selected(expression, locals);
      case 'call':
        return this.#called(expression, locals);
      case 'list':
        return gathered(expression.elements, always, (element) => this.#value(element, locals));
      case 'comprehension':
        return this.#looped(expression, locals);
      default:
        throw new Beyond();
    }
  }

  #named(name: string, locals: Local | undefined): CelResult {
    const local = localOf(name, locals);
    if (local !== undefined) {
      return local.value;
    }
    const value = this.#bindings.get(name);
    if (value === undefined) {
      throw new Beyond();
    }
    return value;
  }

  #selected({ operand, field, isTest }: SelectExpression, locals: Local | undefined): CelResult {
    if (operand.kind === 'identifier' && operand.name === 'variables' && localOf('variables', locals) === undefined) {
      return this.#variable(field);
    }
    const value = this.#value(operand, locals);
    if (isRecord(value)) {
      return isTest ? Object.hasOwn(value, field) : fieldOf(value, field);
    }
    if (isTest && !(value instanceof EvaluationFailure)) {
      throw new Beyond();
    }
    return FAILED;
  }

  #variable(name: string): CelResult {
    const known = this.#computed.get(name);
    if (known !== undefined) {
      return known;
    }
    const variable = this.#variables.get(name);
    if (variable === undefined) {
      throw new Beyond();
    }
    const value = this.#value(variable.expression, undefined);
    this.#computed.set(name, value);
    return value;
  }

  #called({ function: name, target, args }: CallExpression, locals: Local | undefined): CelResult {
    switch (name) {
      case Operator.LogicalAnd:
        return this.#untilOne(false, args, (argument) => this.#value(argument, locals));
      case Operator.LogicalOr:
        return this.#untilOne(true, args, (argument) => this.#value(argument, locals));
      case Operator.Conditional:
        return this.#chosen(args, locals);
      default:
        return this.#applied(name, target === undefined ? args : [target, ...args], locals);
    }
  }

  /** As `&&` and `||` have it, and the loops that are made of them: an end, if one comes to it, whatever the others come to. */
  #untilOne<T>(end: boolean, items: Iterable<T>, valueOf: (item: T) => CelResult): boolean | EvaluationFailure {
    let result: boolean | EvaluationFailure = !end;
    for (const item of items) {
      const value = valueOf(item);
      if (value === end) {
        return end;
      }
      result = value === !end ? result : FAILED;
    }
    return result;
  }

  #chosen([condition, truthy, falsy]: readonly Expression[], locals: Local | undefined): CelResult {
    const value = condition === undefined ? FAILED : this.#value(condition, locals);
    const chosen = value === true ? truthy : value === false ? falsy : undefined;
    return chosen === undefined ? FAILED : this.#value(chosen, locals);
  }

  #applied(name: string, operands: readonly Expression[], locals: Local | undefined): CelResult {
    const called = BOUNDED_FUNCTIONS.get(name);
    if (called === undefined) {
      throw new Beyond();
    }
    const values = gathered(operands, always, (operand) => this.#value(operand, locals));
    if (values instanceof EvaluationFailure) {
      return values;
    }
    const [a = null, b = null] = values;
    this.work(called.work(a, b));
    return called.call(a, b, this);
  }

  #looped({ range, variable, macro }: ComprehensionExpression, locals: Local | undefined): CelResult {
    const over = this.#value(range, locals);
    const items = isList(over) ? over : isRecord(over) ? keysOf(over, this) : undefined;
    const [, first, second] = macro.args;
    if (items === undefined || first === undefined) {
      return FAILED;
    }
    const valueOf =
      (body: Expression) =>
      (item: CelValue): CelResult =>
        this.#value(body, { name: variable, value: item, outer: locals });
    switch (macro.name) {
      case 'all':
        return this.#untilOne(false, items, valueOf(first));
      case 'exists':
        return this.#untilOne(true, items, valueOf(first));
      case 'exists_one': {
        const found = gathered(items, valueOf(first), itself);
        return found instanceof EvaluationFailure ? found : found.length === 1;
      }
      case 'filter':
        return gathered(items, valueOf(first), itself);
      case 'map':
        return second === undefined
          ? gathered(items, always, valueOf(first))
          : gathered(items, valueOf(first), valueOf(second));
      default:
        throw new Beyond();
    }
  }
}

function localOf(name: string, locals: Local | undefined): Local | undefined {
  let local = locals;
  while (local !== undefined && local.name !== name) {
    local = local.outer;
  }
  return local;
}

function itself(item: CelValue): CelValue {
  return item;
}

function always(): true {
  return true;
}

/** What is made of the items that are wanted. After a failure it goes on: what is evaluated has its cost, whatever becomes of it. */
function gathered<T>(
  items: readonly T[],
  isWanted: (item: T) => CelResult,
  made: (item: T) => CelResult,
): readonly CelValue[] | EvaluationFailure {
  const values: CelValue[] = [];
  let isFailed = false;
  for (const item of items) {
    const isWantedHere = isWanted(item);
    const value = isWantedHere === true ? made(item) : undefined;
    isFailed ||= typeof isWantedHere !== 'boolean' || value instanceof EvaluationFailure;
    if (value !== undefined && !(value instanceof EvaluationFailure)) {
      values.push(value);
    }
  }
  return isFailed ? FAILED : values;
}
