// Expressions of people who may be hostile, where nobody can end what takes too long: an evaluation of which every step counts.
//
// What the language's own evaluation does is counted step by step as well, but by each function and macro for itself, and one that
// forgets to costs others their time. Here whatever is done passes one of two doors: `#value` counts a unit for each node, each time,
// and functions are called by it only, with the units that they say they work at the most. So an evaluation takes no longer than its
// units, whatever is written in it. The price is the smaller language; what is beyond it is for others to find out.
import type { CallExpression, ComprehensionExpression, Expression, SelectExpression } from '../ast.ts';
import { Cancellation, Frame, isList, isRecord } from '../evaluate/index.ts';
import { Operator } from '../syntax/index.ts';
import type { CelValue, WorkMeter } from '../value.ts';
import type { BoundedExpression } from './bounded-expression.ts';
import { BEYOND, BOUNDED_FUNCTIONS, fieldOf, keysOf } from './functions.ts';

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
  readonly #computed = new Map<string, CelValue>();
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
   * The value of an expression, the same that the language's own evaluation gives. Undefined where that one fails anywhere, where this
   * one does not know what it does or would work too much, and when it was interrupted.
   */
  evaluate({ expression }: BoundedExpression): CelValue | undefined {
    this.#depth = 0;
    try {
      return this.#value(expression, undefined);
    } catch (error) {
      if (error === BEYOND || error instanceof Cancellation) {
        return undefined;
      }
      throw error;
    }
  }

  /** Counts work. @throws Cancellation, or {@link BEYOND} */
  work(units: number): void {
    this.#worked += units;
    this.#frame.work(units);
    if (this.#worked > MAX_BOUNDED_WORK) {
      throw BEYOND;
    }
  }

  #value(expression: Expression, locals: Local | undefined): CelValue {
    this.work(1);
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) {
      throw BEYOND;
    }
    const value = this.#valueOf(expression, locals);
    this.#depth -= 1;
    return value;
  }

  #valueOf(expression: Expression, locals: Local | undefined): CelValue {
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
        return expression.elements.map((element) => this.#value(element, locals));
      case 'comprehension':
        return this.#looped(expression, locals);
      default:
        throw BEYOND;
    }
  }

  #named(name: string, locals: Local | undefined): CelValue {
    const local = localOf(name, locals);
    if (local !== undefined) {
      return local.value;
    }
    const value = this.#bindings.get(name);
    if (value === undefined) {
      throw BEYOND;
    }
    return value;
  }

  #selected({ operand, field, isTest }: SelectExpression, locals: Local | undefined): CelValue {
    if (operand.kind === 'identifier' && operand.name === 'variables' && localOf('variables', locals) === undefined) {
      return this.#variable(field);
    }
    const value = this.#value(operand, locals);
    if (!isRecord(value)) {
      throw BEYOND;
    }
    return isTest ? Object.hasOwn(value, field) : fieldOf(value, field);
  }

  #variable(name: string): CelValue {
    const known = this.#computed.get(name);
    if (known !== undefined) {
      return known;
    }
    const variable = this.#variables.get(name);
    if (variable === undefined) {
      throw BEYOND;
    }
    const value = this.#value(variable.expression, undefined);
    this.#computed.set(name, value);
    return value;
  }

  #called({ function: name, target, args }: CallExpression, locals: Local | undefined): CelValue {
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

  /** As `&&` and `||` have it, and the loops that are made of them: an end, if one comes to it. */
  #untilOne<T>(end: boolean, items: Iterable<T>, valueOf: (item: T) => CelValue): boolean {
    for (const item of items) {
      if (truth(valueOf(item)) === end) {
        return end;
      }
    }
    return !end;
  }

  #chosen([condition, truthy, falsy]: readonly Expression[], locals: Local | undefined): CelValue {
    if (condition === undefined || truthy === undefined || falsy === undefined) {
      throw BEYOND;
    }
    return this.#value(truth(this.#value(condition, locals)) ? truthy : falsy, locals);
  }

  #applied(name: string, operands: readonly Expression[], locals: Local | undefined): CelValue {
    const called = BOUNDED_FUNCTIONS.get(name);
    if (called === undefined) {
      throw BEYOND;
    }
    const [a = null, b = null] = operands.map((operand) => this.#value(operand, locals));
    this.work(called.work(a, b));
    return called.call(a, b, this);
  }

  #looped({ range, variable, macro }: ComprehensionExpression, locals: Local | undefined): CelValue {
    const over = this.#value(range, locals);
    const items = isList(over) ? over : isRecord(over) ? keysOf(over, this) : undefined;
    const [, first, second] = macro.args;
    if (items === undefined || first === undefined) {
      throw BEYOND;
    }
    const valueOf =
      (body: Expression) =>
      (item: CelValue): CelValue =>
        this.#value(body, { name: variable, value: item, outer: locals });
    const holds = (item: CelValue): boolean => truth(valueOf(first)(item));
    switch (macro.name) {
      case 'all':
        return this.#untilOne(false, items, valueOf(first));
      case 'exists':
        return this.#untilOne(true, items, valueOf(first));
      case 'exists_one':
        return items.filter(holds).length === 1;
      case 'filter':
        return items.filter(holds);
      case 'map':
        return second === undefined
          ? items.map(valueOf(first))
          : items.flatMap((item) => (holds(item) ? [valueOf(second)(item)] : []));
      default:
        throw BEYOND;
    }
  }
}

function truth(value: CelValue): boolean {
  if (typeof value !== 'boolean') {
    throw BEYOND;
  }
  return value;
}

function localOf(name: string, locals: Local | undefined): Local | undefined {
  let local = locals;
  while (local !== undefined && local.name !== name) {
    local = local.outer;
  }
  return local;
}
