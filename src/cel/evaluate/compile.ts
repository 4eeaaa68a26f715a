import type {
  CallExpression,
  ComprehensionExpression,
  Expression,
  ListExpression,
  MapExpression,
  SelectExpression,
  StructExpression,
} from '../model/ast.ts';
import { CelError } from '../model/errors.ts';
import { rootedName } from '../model/rooted-name.ts';
import type { Overload } from '../model/library.ts';
import { EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { goTypeOf, isQualifier } from './access.ts';
import { attribute, qualified, runAttribute, runRawOptional } from './attribute.ts';
import type { Attribute, Qualifier } from './attribute.ts';
import {
  compileAnd,
  compileCall,
  compileEquality,
  compileEqualityWith,
  compileMembership,
  compileNot,
  compileNotStrictlyFalse,
  compileOr,
} from './call.ts';
import type { CompileInput } from './compile-input.ts';
import {
  ALL,
  compileExistsOne,
  compileQuantifier,
  EXISTS,
  compileCollect,
  compileInsert,
  compileLoop,
} from './comprehension.ts';
import type { Iteration } from './comprehension.ts';
import { compileList, compileMap, compileStruct } from './construction.ts';
import { Cancellation } from './frame.ts';
import type { Run } from './frame.ts';
import { CompiledExpression } from './compiled-expression.ts';
import { MESSAGE_STRUCTS } from './messages.ts';
import { CelOptional } from './optional.ts';
import { nameOfType } from './runtime-type.ts';
import { CelTypeValue } from './type-value.ts';
import { isList } from './type-name.ts';

/** Conversions that are evaluated at compile time for a literal, and then cost nothing. */
const CONVERSIONS: ReadonlySet<string> = new Set([
  'bool',
  'bytes',
  'double',
  'duration',
  'dyn',
  'int',
  'string',
  'timestamp',
  'type',
  'uint',
]);

/** A literal, which costs nothing. */
interface Constant {
  readonly kind: 'constant';
  readonly value: CelValue;
}

interface Computed {
  readonly kind: 'computed';
  readonly run: Run;
}

type Plan = Constant | Attribute | Computed;

/** The attribute of a name in a macro: a slot, or the value of a binding, which is evaluated on first use. */
type Local = { readonly name: string; readonly attribute: Attribute };

/**
 * Compiles an expression to closures.
 * @throws CelError 'check-failed' if a literal is invalid, as in API servers
 */
export function compileExpression(input: CompileInput): CompiledExpression {
  const compiler = new Compiler(input);
  const run = compiler.compile(input.expression);
  return new CompiledExpression(run, compiler.variables, compiler.slotCount);
}

class Compiler {
  /** Slots of variables by name. */
  readonly variables = new Map<string, number>();
  slotCount = 0;
  readonly #input: CompileInput;
  /** Variables of the enclosing macros, innermost last. */
  readonly #locals: Local[] = [];

  constructor(input: CompileInput) {
    this.#input = input;
  }

  compile(expression: Expression): Run {
    return this.#run(this.#plan(expression));
  }

  #run(plan: Plan): Run {
    switch (plan.kind) {
      case 'constant': {
        const { value } = plan;
        return () => value;
      }
      case 'attribute':
        return runAttribute(plan, 1);
      default:
        return plan.run;
    }
  }

  #newSlot(): number {
    this.slotCount += 1;
    return this.slotCount - 1;
  }

  #plan(expression: Expression): Plan {
    switch (expression.kind) {
      case 'literal':
        return constant(expression.value);
      case 'identifier':
        return this.#identifier(expression.name, expression.id);
      case 'select':
        return this.#select(expression);
      case 'call':
        return this.#call(expression);
      case 'list':
        return this.#list(expression);
      case 'map':
        return this.#map(expression);
      case 'struct':
        return this.#struct(expression);
      default:
        return this.#comprehension(expression);
    }
  }

  #identifier(name: string, id: number): Plan {
    const meaning = this.#input.meanings.get(id);
    if (meaning !== undefined) {
      return constant(meaning.kind === 'constant' ? meaning.value : new CelTypeValue(nameOfType(meaning.denotes)));
    }
    return this.#local(name) ?? this.#variable(rootedName(name));
  }

  #local(name: string): Attribute | undefined {
    return this.#locals.findLast((local) => local.name === name)?.attribute;
  }

  #variable(name: string): Attribute {
    const slot = this.variables.get(name) ?? this.#newSlot();
    this.variables.set(name, slot);
    return attribute({ kind: 'slot', slot });
  }

  #select({ operand, field, isTest, id }: SelectExpression): Plan {
    return qualified(this.#asAttribute(this.#plan(operand)), this.#qualifier(field, id, { isTest }));
  }

  #qualifier(key: CelValue, id: number, options: Partial<Qualifier>): Qualifier {
    return {
      key,
      id,
      compute: undefined,
      isOptional: false,
      isTest: false,
      ...options,
    };
  }

  /** Any plan as an attribute. */
  #asAttribute(plan: Plan): Attribute {
    return plan.kind === 'attribute' ? plan : attribute({ kind: 'operand', run: this.#run(plan) });
  }

  #call(call: CallExpression): Plan {
    const { args } = call;
    const [first, second, third] = args;
    switch (call.function) {
      case '_&&_':
      case '_||_':
        return this.#logical(call);
      case '_?_:_':
        return first === undefined || second === undefined || third === undefined
          ? this.#function(call)
          : this.#conditional(call.id, first, second, third);
      case '_==_':
      case '_!=_':
        return first === undefined || second === undefined
          ? this.#function(call)
          : this.#equality(first, second, call.function === '_==_');
      case '_[_]':
      case '_?._':
      case '_[?_]':
        return first === undefined || second === undefined ? this.#function(call) : this.#index(call, first, second);
      case '!_':
        return first === undefined ? this.#function(call) : computed(compileNot(this.compile(first), call.id));
      case '@not_strictly_false':
        return first === undefined ? this.#function(call) : computed(compileNotStrictlyFalse(this.compile(first)));
      case '@in':
        return first === undefined || second === undefined
          ? this.#function(call)
          : this.#membership(call, first, second);
      case 'or':
      case 'orValue':
        return this.#alternative(call);
      default:
        return this.#function(call);
    }
  }

  #logical(call: CallExpression): Plan {
    const combine = call.function === '_&&_' ? compileAnd : compileOr;
    const [first, ...rest] = call.args.map((argument) => this.compile(argument));
    return first === undefined
      ? this.#function(call)
      : computed(rest.reduce((left, right) => combine(left, right, call.id), first));
  }

  #conditional(id: number, condition: Expression, truthy: Expression, falsy: Expression): Plan {
    return attribute({
      kind: 'conditional',
      id,
      condition: this.compile(condition),
      truthy: this.#asAttribute(this.#plan(truthy)),
      falsy: this.#asAttribute(this.#plan(falsy)),
    });
  }

  #equality(left: Expression, right: Expression, isEqual: boolean): Plan {
    const leftPlan = this.#plan(left);
    const rightPlan = this.#plan(right);
    const simple = simpleConstant(rightPlan) ?? simpleConstant(leftPlan);
    if (simple === undefined || (leftPlan.kind === 'constant' && rightPlan.kind === 'constant')) {
      return computed(compileEquality(this.#run(leftPlan), this.#run(rightPlan), isEqual));
    }
    const operand = simpleConstant(rightPlan) === undefined ? rightPlan : leftPlan;
    return computed(compileEqualityWith(this.#run(operand), simple, { isEqual, isLeft: operand === rightPlan }));
  }

  #index(call: CallExpression, operand: Expression, index: Expression): Plan {
    const isOptional = call.function !== '_[_]';
    const from = this.#asAttribute(this.#plan(operand));
    const key = this.#plan(index);
    if (key.kind === 'constant') {
      if (!isQualifier(key.value)) {
        throw compileError(new EvaluationFailure(`invalid qualifier type: ${goTypeOf(key.value)}`));
      }
      return qualified(from, this.#qualifier(key.value, call.id, { isOptional }));
    }
    const compute = key.kind === 'attribute' ? runAttribute(key, 0) : key.run;
    return qualified(from, this.#qualifier(null, call.id, { compute, isOptional }));
  }

  #membership(call: CallExpression, element: Expression, collection: Expression): Plan {
    const list = this.#plan(collection);
    const checkedOverloads = this.#input.overloads.get(call.id);
    if (list.kind === 'constant' && isList(list.value) && checkedOverloads?.length === 1) {
      const operand = this.compile(element);
      if (list.value.length === 0) {
        return constant(false);
      }
      const membership = compileMembership(operand, list.value);
      if (membership !== undefined) {
        return computed(membership);
      }
    }
    return this.#function(call);
  }

  /**
   * `optional.or(optional)` and `optional.orValue(value)`: the argument is evaluated only if needed, and the call costs
   * nothing.
   */
  #alternative(call: CallExpression): Plan {
    const [other] = call.args;
    const checkedOverloads = this.#input.overloads.get(call.id);
    const isOtherFunction = checkedOverloads?.length === 1 && checkedOverloads[0]?.id.startsWith('optional_') !== true;
    if (call.target === undefined || other === undefined || call.args.length !== 1 || isOtherFunction) {
      return this.#function(call);
    }
    const target = this.#plan(call.target);
    const fallback = this.compile(other);
    const isValue = call.function === 'orValue';
    const raw = isValue && target.kind === 'attribute' ? runRawOptional(target) : undefined;
    if (raw !== undefined) {
      return computed((frame) => {
        const value = raw(frame);
        return value === undefined ? fallback(frame) : value;
      });
    }
    const optional = this.#run(target);
    const needsOptional = isValue && this.#input.optionalReceivers === true;
    return computed((frame) => {
      const value = optional(frame);
      if (!(value instanceof CelOptional)) {
        const isMisused = needsOptional && !(value instanceof EvaluationFailure);
        return isMisused ? new EvaluationFailure(NO_SUCH_OVERLOAD, call.id) : value;
      }
      if (value.value === undefined) {
        return fallback(frame);
      }
      return isValue ? value.value : value;
    });
  }

  #function(call: CallExpression): Plan {
    const name = rootedName(call.function);
    const operands = call.target === undefined ? call.args : [call.target, ...call.args];
    const plans = operands.map((operand) => this.#plan(operand));
    const checkedOverloads = this.#input.overloads.get(call.id);
    const literals = plans.map((plan) => (plan.kind === 'constant' ? plan.value : undefined));
    const run = compileCall({
      id: call.id,
      name,
      args: plans.map((plan) => this.#run(plan)),
      literals,
      checkedOverloads,
      declaredOverloads: this.#declaredOverloads(name, operands.length, checkedOverloads),
    });
    if (run instanceof EvaluationFailure) {
      throw compileError(run);
    }
    const [literal] = literals;
    return CONVERSIONS.has(name) && literals.length === 1 && literal !== undefined
      ? this.#converted(run)
      : computed(run);
  }

  /** A conversion of a literal is a literal. */
  #converted(run: Run): Plan {
    const { value } = new CompiledExpression(run, new Map(), 0).evaluate({}, { budget: Infinity });
    if (value instanceof EvaluationFailure || value instanceof Cancellation) {
      throw compileError(value);
    }
    return constant(value);
  }

  /** The overloads with this name and argument count, including the receiver. */
  #declaredOverloads(
    name: string,
    count: number,
    checkedOverloads: readonly Overload[] | undefined,
  ): readonly Overload[] {
    const declared = (this.#input.functions.get(name) ?? checkedOverloads ?? []).filter(
      ({ parameters }) => parameters.length === count,
    );
    return declared;
  }

  #list({ elements, optionalIndexes }: ListExpression): Plan {
    const plans = elements.map((element) => this.#plan(element));
    const values = constantValues(plans);
    if (values !== undefined && optionalIndexes.size === 0) {
      return constant(values);
    }
    return computed(
      compileList(
        plans.map((plan) => this.#run(plan)),
        optionalIndexes,
      ),
    );
  }

  #map({ entries }: MapExpression): Plan {
    const keys = entries.map(({ key }) => this.#plan(key));
    const values = entries.map(({ value }) => this.#plan(value));
    const isConstant =
      constantValues([...keys, ...values]) !== undefined && entries.every(({ isOptional }) => !isOptional);
    const run = compileMap(
      entries.map(({ isOptional }, index) => ({
        key: this.#run(keys[index] ?? constant(null)),
        value: this.#run(values[index] ?? constant(null)),
        isOptional,
      })),
    );
    if (!isConstant) {
      return computed(run);
    }
    const { value } = new CompiledExpression(run, new Map(), 0).evaluate({}, { budget: Infinity });
    // API servers accept keys of every type; here such a map fails when it is evaluated.
    return value instanceof EvaluationFailure || value instanceof Cancellation ? computed(run) : constant(value);
  }

  #struct({ typeName, fields }: StructExpression): Plan {
    const { structs } = this.#input;
    const name = rootedName(typeName);
    const factory = structs?.has(name) === true ? structs : MESSAGE_STRUCTS;
    if (!factory.has(name)) {
      throw compileError(new EvaluationFailure(`unknown type: ${typeName}`));
    }
    const compiled = fields.map((field) => ({
      name: field.name,
      value: this.compile(field.value),
      isOptional: field.isOptional,
    }));
    return computed(compileStruct(factory, name, compiled));
  }

  #comprehension(loop: ComprehensionExpression): Plan {
    const range = this.#plan(loop.range);
    if (isBinding(loop, range)) {
      return this.#binding(loop);
    }
    const iteration: Iteration = {
      id: loop.id,
      range: this.#run(range),
      slot: this.#newSlot(),
      secondSlot: loop.secondVariable === undefined ? undefined : this.#newSlot(),
    };
    return this.#within(iterationVariables(loop, iteration), () => computed(this.#loop(loop, iteration)));
  }

  #within<Result>(locals: readonly Local[], compile: () => Result): Result {
    this.#locals.push(...locals);
    const result = compile();
    this.#locals.length -= locals.length;
    return result;
  }

  /** `cel.bind` and similar macros: the name stands for a value that is evaluated on first use. */
  #binding(loop: ComprehensionExpression): Plan {
    const slot = this.#newSlot();
    const initial = this.compile(loop.initial);
    const name = attribute({ kind: 'operand', run: evaluateOnce(slot, initial) });
    const result = this.#within([{ name: loop.accumulator, attribute: name }], () => this.compile(loop.result));
    return computed((frame) => {
      frame.slots[slot] = undefined;
      return result(frame);
    });
  }

  #loop(loop: ComprehensionExpression, iteration: Iteration): Run {
    return (
      this.#quantifier(loop, iteration) ?? this.#collectLoop(loop, iteration) ?? this.#generalLoop(loop, iteration)
    );
  }

  /** `all`, `exists` and `exists_one`. */
  #quantifier(loop: ComprehensionExpression, iteration: Iteration): Run | undefined {
    const { accumulator, initial, condition, step, result } = loop;
    if (initial.kind !== 'literal' || step.kind !== 'call') {
      return undefined;
    }
    const [first, second, third] = step.args;
    const isPlain = isName(result, accumulator) && isCall(condition, '@not_strictly_false');
    if (isPlain && second !== undefined && isName(first, accumulator)) {
      if (initial.value === true && step.function === '_&&_') {
        return compileQuantifier(iteration, this.compile(second), ALL);
      }
      if (initial.value === false && step.function === '_||_') {
        return compileQuantifier(iteration, this.compile(second), EXISTS);
      }
    }
    const isCounting = initial.value === 0 && isCall(result, '_==_') && isCall(second, '_+_');
    return isCounting && step.function === '_?_:_' && first !== undefined && isName(third, accumulator)
      ? compileExistsOne(iteration, this.compile(first))
      : undefined;
  }

  /** `map`, `filter` and the transformations, which build a list or a map. */
  #collectLoop(loop: ComprehensionExpression, iteration: Iteration): Run | undefined {
    const { accumulator, initial, condition, result } = loop;
    const isPlain = condition.kind === 'literal' && condition.value === true && isName(result, accumulator);
    const { filter, step } = filtered(loop);
    if (!isPlain || step.kind !== 'call' || !isName(step.args[0], accumulator)) {
      return undefined;
    }
    if (initial.kind === 'list' && initial.elements.length === 0 && step.function === '_+_') {
      return this.#listCollectLoop(step, filter, iteration);
    }
    return initial.kind === 'map' && initial.entries.length === 0 && step.function === 'cel.@mapInsert'
      ? this.#insertLoop(loop, step, filter, iteration)
      : undefined;
  }

  #listCollectLoop(step: CallExpression, filter: Expression | undefined, iteration: Iteration): Run | undefined {
    const appended = step.args[1];
    if (appended?.kind !== 'list' || appended.elements.length !== 1 || appended.optionalIndexes.size > 0) {
      return undefined;
    }
    const [element] = appended.elements;
    if (element === undefined) {
      return undefined;
    }
    const plan = this.#plan(element);
    return compileCollect(iteration, {
      filter: filter === undefined ? undefined : this.compile(filter),
      element: this.#run(plan),
      isLiteral: plan.kind === 'constant',
    });
  }

  #insertLoop(
    loop: ComprehensionExpression,
    step: CallExpression,
    filter: Expression | undefined,
    iteration: Iteration,
  ): Run | undefined {
    const [, second, third] = step.args;
    const condition = filter === undefined ? undefined : this.compile(filter);
    if (third === undefined) {
      return second === undefined
        ? undefined
        : compileInsert(iteration, { filter: condition, value: undefined, entries: this.compile(second) });
    }
    return isName(second, loop.variable)
      ? compileInsert(iteration, { filter: condition, value: this.compile(third), entries: undefined })
      : undefined;
  }

  #generalLoop(loop: ComprehensionExpression, iteration: Iteration): Run {
    const accumulatorSlot = this.#newSlot();
    // The initial accumulator is outside of the loop and cannot use its variables.
    const hidden = this.#locals.splice(this.#locals.length - iterationVariables(loop, iteration).length);
    const initial = this.compile(loop.initial);
    this.#locals.push(...hidden);
    const name = attribute({ kind: 'operand', run: evaluateOnce(accumulatorSlot, initial) });
    const accumulator: Local = { name: loop.accumulator, attribute: name };
    const parts = this.#within([accumulator], () => ({
      condition: this.compile(loop.condition),
      step: this.compile(loop.step),
    }));
    this.#locals.splice(this.#locals.length - hidden.length);
    const result = this.#within([accumulator], () => this.compile(loop.result));
    this.#locals.push(...hidden);
    return compileLoop({ iteration, accumulatorSlot, ...parts, result });
  }
}

function constant(value: CelValue): Constant {
  return { kind: 'constant', value };
}

function computed(run: Run): Computed {
  return { kind: 'computed', run };
}

function compileError(failure: { readonly message: string }): CelError {
  return new CelError('check-failed', `program instantiation failed: ${failure.message}`);
}

/** A string or number literal, for which comparisons have a fast implementation. */
function simpleConstant(plan: Plan): string | number | undefined {
  if (plan.kind !== 'constant') {
    return undefined;
  }
  const { value } = plan;
  return typeof value === 'string' || (typeof value === 'number' && Number.isInteger(value)) ? value : undefined;
}

function constantValues(plans: readonly Plan[]): CelValue[] | undefined {
  const values: CelValue[] = [];
  for (const plan of plans) {
    if (plan.kind !== 'constant') {
      return undefined;
    }
    values.push(plan.value);
  }
  return values;
}

function isName(expression: Expression | undefined, name: string): boolean {
  return expression?.kind === 'identifier' && expression.name === name;
}

function isCall(expression: Expression | undefined, name: string): boolean {
  return expression?.kind === 'call' && expression.function === name;
}

/** Whether a comprehension only binds a name: an empty range, and a condition that is always false. */
function isBinding(loop: ComprehensionExpression, range: Plan): boolean {
  const isEmpty = range.kind === 'constant' && isList(range.value) && range.value.length === 0;
  return isEmpty && loop.condition.kind === 'literal' && loop.condition.value === false;
}

function iterationVariables(loop: ComprehensionExpression, iteration: Iteration): readonly Local[] {
  const first = { name: loop.variable, attribute: attribute({ kind: 'slot', slot: iteration.slot }) };
  return loop.secondVariable === undefined || iteration.secondSlot === undefined
    ? [first]
    : [first, { name: loop.secondVariable, attribute: attribute({ kind: 'slot', slot: iteration.secondSlot }) }];
}

/** Splits a step of the form `filter ? step : accumulator`. */
function filtered(loop: ComprehensionExpression): {
  readonly filter: Expression | undefined;
  readonly step: Expression;
} {
  const { step, accumulator } = loop;
  if (step.kind === 'call' && step.function === '_?_:_') {
    const [filter, truthy, falsy] = step.args;
    if (filter !== undefined && truthy !== undefined && isName(falsy, accumulator)) {
      return { filter, step: truthy };
    }
  }
  return { filter: undefined, step };
}

/** Evaluates the value of a slot on first use. */
function evaluateOnce(slot: number, initial: Run): Run {
  return (frame) => {
    const known = frame.slots[slot];
    if (known !== undefined) {
      return known;
    }
    const value: CelResult = initial(frame);
    frame.slots[slot] = value;
    return value;
  };
}
