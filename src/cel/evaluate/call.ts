import { CALL_COST } from '../model/library.ts';
import type { Overload } from '../model/library.ts';
import { CelDouble, CelObject, CelUint, EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult, CelValue, WorkMeter } from '../model/value.ts';
import { equalValues } from './equality.ts';
import { MAX_TEXT_LENGTH, COST_EXCEEDED, Cancellation, ELEMENTS_PER_WORK } from './frame.ts';
import type { Frame, Run } from './frame.ts';
import { failureOf, located } from './attribute.ts';
import { mapSize } from './map.ts';
import { CelOptional } from './optional.ts';
import { compilePattern } from './pattern.ts';
import { typeTest } from './runtime-type.ts';
import type { TypeTest } from './runtime-type.ts';
import { sizeOf } from './size.ts';
import { traversal } from './standard-costs.ts';
import { isIn } from './standard-library.ts';
import { CelStruct } from './struct.ts';
import { CelDuration, CelTimestamp } from './time.ts';
import { isList, isMap, typeNameOf } from './type-name.ts';
import { CelTypeValue } from './type-value.ts';

/** Functions with one implementation for all types, which checks its operands itself. */
const SINGLETONS: ReadonlySet<string> = new Set([
  '!_',
  '-_',
  '_+_',
  '_-_',
  '_*_',
  '_/_',
  '_%_',
  '_<_',
  '_<=_',
  '_>_',
  '_>=_',
  '@in',
  'size',
  'type',
  'dyn',
  'matches',
  // These string functions check their operands too.
  'startsWith',
  'endsWith',
  'contains',
]);

/** Functions that read the texts in lists. */
const COMPARES_TEXTS: ReadonlySet<string> = new Set([
  'distinct',
  'includes',
  'indexOf',
  'isSorted',
  'join',
  'lastIndexOf',
  'max',
  'min',
  'sets.contains',
  'sets.equivalent',
  'sets.intersects',
  'sort',
  '@sortByAssociatedKeys',
]);

/** Characters per unit of work, for functions that read their arguments but cost only 1. */
const CHARACTERS_PER_WORK = 16;
/** Work of compiling a regular expression, besides its length. */
const PATTERN_WORK = 200;

interface CallPlan {
  readonly id: number;
  readonly name: string;
  readonly args: readonly Run[];
  /** Values of literal arguments. */
  readonly literals: readonly (CelValue | undefined)[];
  /** Overloads found by the checker; undefined if the expression is not checked. */
  readonly checkedOverloads: readonly Overload[] | undefined;
  /** All overloads of the function. */
  readonly declaredOverloads: readonly Overload[];
}

type Cost = (args: readonly CelValue[], result: CelResult) => number;

interface Implementation {
  /** Whether it was prepared with literal arguments. */
  readonly isPrepared: boolean;
  readonly call: (...args: CelValue[]) => CelResult;
  /** Undefined: always {@link CALL_COST}. */
  readonly cost: Cost | undefined;
}

/** Work of a match per character of the text and instruction of the pattern. */
const WORK_PER_STEP = 1 / 4;

/** Assumed growth of a pattern by counted repetitions, if the pattern is not a literal. */
const REPETITION_FACTOR = 100;

/** Compiles a call that evaluates all its arguments; a failure if literal arguments are invalid. */
export function compileCall(plan: CallPlan): Run | EvaluationFailure {
  const implementation = implementationOf(plan);
  if (implementation instanceof EvaluationFailure) {
    return implementation;
  }
  const metered = plan.name === '@in' ? isIn : undefined;
  const counted = { ...implementation, id: plan.id, metered, work: workBefore(plan), workAfter: workAfter(plan) };
  const [first, second] = plan.args;
  if (plan.args.length === 1 && first !== undefined) {
    return unaryCall(first, counted);
  }
  return plan.args.length === 2 && first !== undefined && second !== undefined
    ? binaryCall(first, second, counted)
    : variadicCall(plan.args, counted);
}

function implementationOf(plan: CallPlan): Implementation | EvaluationFailure {
  const only = plan.checkedOverloads?.length === 1 ? plan.checkedOverloads[0] : undefined;
  const candidates = only === undefined ? plan.declaredOverloads : [only];
  const [first] = candidates;
  if (first === undefined) {
    return {
      call: () => new EvaluationFailure(`${NO_SUCH_OVERLOAD}: ${plan.name}`),
      cost: undefined,
      isPrepared: false,
    };
  }
  const prepared = first.prepare?.(plan.literals);
  if (prepared instanceof EvaluationFailure) {
    return prepared;
  }
  const cost = costOf(only, candidates);
  if (prepared !== undefined && (only !== undefined || SINGLETONS.has(plan.name))) {
    return { call: prepared, cost, isPrepared: true };
  }
  const call = SINGLETONS.has(plan.name) ? first.call : dispatch(plan.name, candidates);
  return { call, cost, isPrepared: false };
}

/** Costs declared by overload id apply only if the overload is known. */
function costOf(only: Overload | undefined, candidates: readonly Overload[]): Cost | undefined {
  if (only !== undefined) {
    return only.cost;
  }
  const costed = candidates.filter(({ cost, costById }) => cost !== undefined && costById !== true);
  if (costed.length === 0) {
    return undefined;
  }
  const tests = costed.map((candidate) => ({ candidate, accepts: acceptsValues(candidate) }));
  return (args, result) => {
    const { candidate } = tests.find(({ accepts }) => accepts(args)) ?? tests[0] ?? {};
    return candidate?.cost?.(args, result) ?? CALL_COST;
  };
}

function acceptsValues(overload: Overload): (args: readonly CelValue[]) => boolean {
  if (overload.isUnguarded === true) {
    return (args) => args.length === overload.parameters.length;
  }
  const tests: readonly TypeTest[] = overload.parameters.map(typeTest);
  return (args) => args.length === tests.length && tests.every((test, index) => test(args[index] ?? null));
}

/** Calls the first overload that accepts the values. */
function dispatch(name: string, candidates: readonly Overload[]): (...args: CelValue[]) => CelResult {
  const choices = candidates.map((candidate) => ({ call: candidate.call, accepts: acceptsValues(candidate) }));
  const [only] = choices;
  if (choices.length === 1 && only !== undefined) {
    return (...args) => (only.accepts(args) ? only.call(...args) : mismatch(name, args));
  }
  return (...args) => {
    const choice = choices.find(({ accepts }) => accepts(args));
    return choice === undefined ? mismatch(name, args) : choice.call(...args);
  };
}

function mismatch(name: string, args: readonly CelValue[]): EvaluationFailure {
  return new EvaluationFailure(`${NO_SUCH_OVERLOAD}: ${name}(${args.map(typeNameOf).join(', ')})`);
}

interface CountedCall extends Implementation {
  readonly id: number;
  /** The implementation of a binary call that counts its work while it runs; undefined for other calls. */
  readonly metered: ((a: CelValue, b: CelValue, meter: WorkMeter) => CelResult) | undefined;
  /** Counts the work of a call before it runs. */
  readonly work: WorkBefore;
  /** The additional work that the overload reports after the call. */
  readonly workAfter: Overload['work'];
}

type WorkBefore = (frame: Frame, a: CelValue, b: CelValue) => void;

/** Limits functions with more work than cost. */
function workBefore(plan: CallPlan): WorkBefore {
  switch (plan.name) {
    case '_+_':
      return countJoinWork;
    case '@in':
      return (frame, _a, b) => frame.work(isList(b) ? b.length / ELEMENTS_PER_WORK : 1);
    case 'matches':
    case 'find':
    case 'findAll':
      return countMatchWork(plan.literals[1]);
    case 'size':
      return (frame, a) => (isMap(a) ? frame.work(mapSize(a) / ELEMENTS_PER_WORK) : countReadWork(frame, a, null));
    default:
      return COMPARES_TEXTS.has(plan.name) ? countCompareWork : countReadWork;
  }
}

/** Reads or compares all texts of a list, before its cost is counted: a list may have one long text many times. */
function countCompareWork(frame: Frame, a: CelResult, b: CelResult): void {
  countReadWork(frame, a, b);
  for (const list of [a, b]) {
    if (isList(list)) {
      const rounds = Math.log2(list.length + 2);
      list.forEach((item) => frame.work((lengthOf(item) * rounds) / CHARACTERS_PER_WORK));
    }
  }
  // Each comparison counts the keys of the map that is looked for.
  if (isList(a) && isMap(b)) {
    frame.work((a.length * mapSize(b)) / ELEMENTS_PER_WORK);
  }
}

/** Nearly every function reads strings completely, and their code points are counted for the cost. */
function countReadWork(frame: Frame, a: CelResult, b: CelResult): void {
  const length = lengthOf(a) + lengthOf(b);
  if (length > CHARACTERS_PER_WORK) {
    frame.work(length / CHARACTERS_PER_WORK);
  }
}

/** Every call is charged for what it returns: results of some cost 1, whatever their size. */
function countResult(frame: Frame, result: CelResult): void {
  if (typeof result === 'object' && result !== null) {
    const size = isList(result) || result instanceof Uint8Array ? result.length : isMap(result) ? mapSize(result) : 0;
    frame.work(size / ELEMENTS_PER_WORK);
  } else if (typeof result === 'string' && result.length > CHARACTERS_PER_WORK) {
    frame.work(result.length / CHARACTERS_PER_WORK);
  }
}

/** Length of strings and bytes; 0 for other values. */
function lengthOf(value: CelResult): number {
  return typeof value === 'string' || value instanceof Uint8Array ? value.length : 0;
}

function workAfter({ declaredOverloads, checkedOverloads }: CallPlan): Overload['work'] {
  const only = checkedOverloads?.length === 1 ? checkedOverloads[0] : undefined;
  return (only ?? declaredOverloads.find(({ work }) => work !== undefined))?.work;
}

function countMatchWork(literal: CelValue | undefined): WorkBefore {
  const pattern = typeof literal === 'string' ? compilePattern(literal) : undefined;
  const size = pattern === undefined || pattern instanceof EvaluationFailure ? undefined : pattern.size;
  return (frame, text, source) => {
    if (typeof text === 'string' && typeof source === 'string') {
      const factor = size ?? source.length * (source.includes('{') ? REPETITION_FACTOR : 1);
      const compiling = size === undefined ? PATTERN_WORK + factor : 0;
      frame.work(compiling + text.length * factor * WORK_PER_STEP);
    }
  };
}

function countJoinWork(frame: Frame, a: CelValue, b: CelValue): void {
  if (typeof a === 'string' && typeof b === 'string') {
    if (a.length + b.length > MAX_TEXT_LENGTH) {
      throw new Cancellation(COST_EXCEEDED);
    }
    frame.work((a.length + b.length) / CHARACTERS_PER_WORK);
  } else if ((isList(a) || a instanceof Uint8Array) && (isList(b) || b instanceof Uint8Array)) {
    frame.work((a.length + b.length) / ELEMENTS_PER_WORK);
  }
}

/** Replaces a failed argument in cost functions: like failures, null has size 1. */
const FAILED = null;

function unaryCall(argument: Run, { call, cost, work, workAfter, id }: CountedCall): Run {
  return (frame) => {
    const value = argument(frame);
    if (value instanceof EvaluationFailure) {
      frame.cost += cost === undefined ? CALL_COST : cost([FAILED], value);
      return value;
    }
    work(frame, value, null);
    const result = located(call(value), id);
    countResult(frame, result);
    if (workAfter !== undefined) {
      frame.work(workAfter([value], result));
    }
    if (cost === undefined) {
      frame.cost += CALL_COST;
    } else {
      frame.cost += cost([value], result);
      frame.checkBudget();
    }
    return result;
  };
}

function binaryCall(left: Run, right: Run, { call, metered, cost, work, workAfter, id, isPrepared }: CountedCall): Run {
  return (frame) => {
    const a = left(frame);
    if (isPrepared && a instanceof EvaluationFailure) {
      // API servers compile such a call as a variadic one, see below.
      return a;
    }
    const b = right(frame);
    if (a instanceof EvaluationFailure || b instanceof EvaluationFailure) {
      const failure = a instanceof EvaluationFailure ? a : failureOf(b);
      frame.cost += cost === undefined ? CALL_COST : cost([orFailed(a), orFailed(b)], failure);
      return failure;
    }
    work(frame, a, b);
    const result = located(metered === undefined ? call(a, b) : metered(a, b, frame), id);
    countResult(frame, result);
    if (workAfter !== undefined) {
      frame.work(workAfter([a, b], result));
    }
    if (cost === undefined) {
      frame.cost += CALL_COST;
      return result;
    }
    frame.cost += cost([a, b], result);
    frame.checkBudget();
    return result;
  };
}

function orFailed(value: CelResult): CelValue {
  return value instanceof EvaluationFailure ? FAILED : value;
}

/**
 * Calls with no argument, or with three or more, stop at the first failure. They cost nothing then, unless the last
 * argument failed.
 */
function variadicCall(args: readonly Run[], { call, cost, work, workAfter, id }: CountedCall): Run {
  const last = args.length - 1;
  return (frame) => {
    const values: CelValue[] = [];
    for (const [index, argument] of args.entries()) {
      const value = argument(frame);
      if (value instanceof EvaluationFailure) {
        if (index === last) {
          frame.cost += cost?.([...values, FAILED], value) ?? CALL_COST;
        }
        return value;
      }
      values.push(value);
    }
    work(frame, values[0] ?? null, values[1] ?? null);
    const result = located(call(...values), id);
    countResult(frame, result);
    frame.work(workAfter?.(values, result) ?? 0);
    frame.cost += cost?.(values, result) ?? CALL_COST;
    frame.checkBudget();
    return result;
  };
}

/** `a && b`: false if one operand is false, even if the other one fails. */
export function compileAnd(left: Run, right: Run, id: number): Run {
  return (frame) => {
    const a = left(frame);
    if (a === false) {
      return false;
    }
    const b = right(frame);
    if (b === false) {
      return false;
    }
    if (a === true) {
      return b === true ? true : failureOf(b, id);
    }
    return failureOf(a, id);
  };
}

/** `a || b`: true if one operand is true, even if the other one fails. */
export function compileOr(left: Run, right: Run, id: number): Run {
  return (frame) => {
    const a = left(frame);
    if (a === true) {
      return true;
    }
    const b = right(frame);
    if (b === true) {
      return true;
    }
    if (a === false) {
      return b === false ? false : failureOf(b, id);
    }
    return failureOf(a, id);
  };
}

/** `!a`. */
export function compileNot(operand: Run, id: number): Run {
  return (frame) => {
    const value = operand(frame);
    frame.cost += CALL_COST;
    if (value === true) {
      return false;
    }
    return value === false ? true : failureOf(value, id);
  };
}

/** Whether `==` with this left operand costs 1, as API servers count it for their library types. */
function isLibraryValue(value: CelResult): boolean {
  return (
    value instanceof CelObject &&
    !(value instanceof CelOptional) &&
    !(value instanceof CelTimestamp) &&
    !(value instanceof CelDuration) &&
    !(value instanceof CelTypeValue) &&
    !(value instanceof CelStruct)
  );
}

/** Up to this length, traversing a nonempty string costs 1 however many code points it has. */
const SHORT = 10;

/** Cost of comparing two values: traversing the smaller one. Measuring their sizes is counted as work. */
function comparisonCost(frame: Frame, a: CelResult, b: CelResult): number {
  countReadWork(frame, a, b);
  if (typeof a === 'string' && typeof b === 'string') {
    return stringComparisonCost(a, b);
  }
  if (typeof a !== 'object' || typeof b !== 'object') {
    const [one, other] = typeof a === 'object' ? [b, a] : [a, b];
    if (typeof other !== 'object') {
      return Number(one !== '' && other !== '');
    }
  }
  return traversal(Math.min(countedSize(frame, a), countedSize(frame, b)));
}

function stringComparisonCost(a: string, b: string): number {
  const shorter = a.length <= b.length ? a : b;
  const longer = shorter === a ? b : a;
  if (shorter.length <= SHORT) {
    return Number(shorter !== '');
  }
  // A string has at least half as many code points as UTF-16 units.
  const size = sizeOf(shorter);
  return traversal(longer.length >= 2 * size ? size : Math.min(size, sizeOf(longer)));
}

function countedSize(frame: Frame, value: CelResult): number {
  if (value instanceof EvaluationFailure) {
    return 1;
  }
  const size = sizeOf(value);
  if (isMap(value) || value instanceof CelOptional) {
    frame.work(size / ELEMENTS_PER_WORK);
  }
  return size;
}

/** `a == b`, `a != b`. */
export function compileEquality(left: Run, right: Run, isEqual: boolean): Run {
  return (frame) => {
    const a = left(frame);
    const b = right(frame);
    frame.cost += isEqual && isLibraryValue(a) ? CALL_COST : comparisonCost(frame, a, b);
    if (a instanceof EvaluationFailure) {
      return a;
    }
    if (b instanceof EvaluationFailure) {
      return b;
    }
    frame.checkBudget();
    if (a instanceof CelObject) {
      const result = a.compareEqual(b, frame);
      return isEqual ? result : result !== true;
    }
    return equalValues(a, b, frame) === isEqual;
  };
}

/** Comparison with a string or number literal on either side, which is the most frequent one. */
export function compileEqualityWith(
  operand: Run,
  constant: string | number,
  {
    isEqual,
    isLeft,
  }: { readonly isEqual: boolean; /** Whether the constant is on the left. */ readonly isLeft: boolean },
): Run {
  const isShort = typeof constant === 'number' || (constant.length <= SHORT && constant !== '');
  const type = typeof constant;
  return (frame) => {
    const value = operand(frame);
    // oxlint-disable-next-line valid-typeof -- the type of the constant
    if (isShort && typeof value === type) {
      frame.cost += Number(value !== '');
      return (value === constant) === isEqual;
    }
    const callsLibrary = !isLeft && isEqual && isLibraryValue(value);
    frame.cost += callsLibrary ? CALL_COST : comparisonCost(frame, value, constant);
    if (value instanceof EvaluationFailure) {
      return value;
    }
    if (value instanceof CelObject && !isLeft) {
      const result = value.compareEqual(constant, frame);
      return isEqual ? result : result !== true;
    }
    return equalValues(value, constant, frame) === isEqual;
  };
}

/** The identity of a value in a set; undefined for values that cannot be looked up in one. */
function memberOf(value: CelValue): string | boolean | number | bigint | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'number':
    case 'bigint':
      return value;
    default:
      break;
  }
  if (value instanceof CelDouble || value instanceof CelUint) {
    const number = Number(value.value) + 0;
    return Number.isSafeInteger(number) || value instanceof CelDouble ? number : value.value;
  }
  return undefined;
}

/**
 * `a in [literals]` with a type from the checker. API servers turn such a list into a set, and only the operand has a
 * cost. Undefined if they do not.
 */
export function compileMembership(operand: Run, list: readonly CelValue[]): Run | undefined {
  const members = new Set<string | boolean | number | bigint>();
  for (const element of list) {
    const member = memberOf(element);
    if (member === undefined) {
      return undefined;
    }
    members.add(member);
  }
  return (frame) => {
    const value = operand(frame);
    if (typeof value === 'string') {
      return members.has(value);
    }
    if (value instanceof EvaluationFailure) {
      return value;
    }
    const member = memberOf(value);
    return member !== undefined && members.has(member);
  };
}

/** `@not_strictly_false(a)`. */
export function compileNotStrictlyFalse(operand: Run): Run {
  return (frame) => {
    const value = operand(frame);
    frame.cost += CALL_COST;
    return typeof value === 'boolean' ? value : true;
  };
}
