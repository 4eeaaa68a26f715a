import { CelDouble, CelUint, EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { MAX_INT, MAX_UINT, MIN_INT, doubleOf, doubleValue, isInt, isNumeric, toInt } from './number.ts';
import { compareValues, isOrdered } from './order.ts';
import { CelDuration, CelTimestamp, addDuration, durationOf, timeBetween } from './time.ts';
import { isList, isMap } from './type-name.ts';
import { mapSize } from './map.ts';
import { codePointCount } from '../model/code-point-count.ts';

// Operators as functions of any values. Failures are those of API servers: with the operator's name if the left
// operand's type does not support the operation, and only "no such overload" if the right operand does not match.
// Strings, timestamps and durations on the left always give the second form.

function noSuchOverload(left: CelValue, operator: string, applies: boolean): EvaluationFailure {
  const isReceiver = typeof left === 'string' || left instanceof CelTimestamp || left instanceof CelDuration;
  return new EvaluationFailure(applies || isReceiver ? NO_SUCH_OVERLOAD : `${NO_SUCH_OVERLOAD}: ${operator}`);
}

function checkedInt(value: bigint): CelResult {
  return value > MAX_INT || value < MIN_INT ? new EvaluationFailure('integer overflow') : toInt(value);
}

function checkedUint(value: bigint): CelResult {
  return value > MAX_UINT || value < 0n ? new EvaluationFailure('unsigned integer overflow') : new CelUint(value);
}

interface NumberOperation {
  readonly ofInts: (a: bigint, b: bigint) => CelResult;
  readonly ofUints: (a: bigint, b: bigint) => CelResult;
  readonly ofDoubles: ((a: number, b: number) => number) | undefined;
}

/** Applies an operation to two numbers of the same type; undefined for other values. */
function calculate(operation: NumberOperation, a: CelValue, b: CelValue): CelResult | undefined {
  if (isInt(a)) {
    return isInt(b) ? operation.ofInts(BigInt(a), BigInt(b)) : undefined;
  }
  if (a instanceof CelUint) {
    return b instanceof CelUint ? operation.ofUints(a.value, b.value) : undefined;
  }
  const left = doubleValue(a);
  const right = doubleValue(b);
  return left === undefined || right === undefined || operation.ofDoubles === undefined
    ? undefined
    : doubleOf(operation.ofDoubles(left, right));
}

const ADDITION: NumberOperation = {
  ofInts: (a, b) => checkedInt(a + b),
  ofUints: (a, b) => checkedUint(a + b),
  ofDoubles: (a, b) => a + b,
};

/** `a + b`. */
export function add(a: CelValue, b: CelValue): CelResult {
  if (typeof a === 'number' && typeof b === 'number') {
    const sum = a + b;
    if (Number.isSafeInteger(sum) && Number.isInteger(a) && Number.isInteger(b)) {
      return sum;
    }
  }
  if (typeof a === 'string' && typeof b === 'string') {
    return a + b;
  }
  if (isList(a) && isList(b)) {
    return concatenate(a, b);
  }
  return calculate(ADDITION, a, b) ?? addOthers(a, b) ?? noSuchOverload(a, '_+_', isAddable(a));
}

function isAddable(value: CelValue): boolean {
  return isNumeric(value) || isList(value) || value instanceof Uint8Array;
}

function concatenate(a: readonly CelValue[], b: readonly CelValue[]): readonly CelValue[] {
  if (a.length === 0 || b.length === 0) {
    return a.length === 0 ? b : a;
  }
  return a.concat(b);
}

function addOthers(a: CelValue, b: CelValue): CelResult | undefined {
  if (a instanceof CelDuration) {
    if (b instanceof CelDuration) {
      return durationOf(a.nanoseconds + b.nanoseconds);
    }
    return b instanceof CelTimestamp ? addDuration(b, a.nanoseconds) : undefined;
  }
  if (a instanceof CelTimestamp && b instanceof CelDuration) {
    return addDuration(a, b.nanoseconds);
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    return new Uint8Array(Buffer.concat([a, b]));
  }
  return undefined;
}

const SUBTRACTION: NumberOperation = {
  ofInts: (a, b) => checkedInt(a - b),
  ofUints: (a, b) => checkedUint(a - b),
  ofDoubles: (a, b) => a - b,
};

/** `a - b`. */
export function subtract(a: CelValue, b: CelValue): CelResult {
  if (typeof a === 'number' && typeof b === 'number') {
    const difference = a - b;
    if (Number.isSafeInteger(difference) && Number.isInteger(a) && Number.isInteger(b)) {
      return difference;
    }
  }
  return calculate(SUBTRACTION, a, b) ?? subtractTimes(a, b) ?? noSuchOverload(a, '_-_', isNumeric(a));
}

function subtractTimes(a: CelValue, b: CelValue): CelResult | undefined {
  if (a instanceof CelTimestamp) {
    if (b instanceof CelTimestamp) {
      return timeBetween(a, b);
    }
    return b instanceof CelDuration ? addDuration(a, -b.nanoseconds) : undefined;
  }
  return a instanceof CelDuration && b instanceof CelDuration ? durationOf(a.nanoseconds - b.nanoseconds) : undefined;
}

const MULTIPLICATION: NumberOperation = {
  ofInts: (a, b) => checkedInt(a * b),
  ofUints: (a, b) => checkedUint(a * b),
  ofDoubles: (a, b) => a * b,
};

/** `a * b`. */
export function multiply(a: CelValue, b: CelValue): CelResult {
  if (typeof a === 'number' && typeof b === 'number') {
    const product = a * b;
    if (Number.isSafeInteger(product) && Number.isInteger(a) && Number.isInteger(b)) {
      // An int is never -0.
      return product + 0;
    }
  }
  return calculate(MULTIPLICATION, a, b) ?? noSuchOverload(a, '_*_', isNumeric(a));
}

const DIVISION: NumberOperation = {
  ofInts: (a, b) => (b === 0n ? new EvaluationFailure('division by zero') : checkedInt(a / b)),
  ofUints: (a, b) => (b === 0n ? new EvaluationFailure('division by zero') : new CelUint(a / b)),
  ofDoubles: (a, b) => a / b,
};

/** `a / b`. */
export function divide(a: CelValue, b: CelValue): CelResult {
  return calculate(DIVISION, a, b) ?? noSuchOverload(a, '_/_', isNumeric(a));
}

const REMAINDER: NumberOperation = {
  ofInts: (a, b) => (b === 0n ? new EvaluationFailure('modulus by zero') : remainder(a, b)),
  ofUints: (a, b) => (b === 0n ? new EvaluationFailure('modulus by zero') : new CelUint(a % b)),
  ofDoubles: undefined,
};

function remainder(a: bigint, b: bigint): CelResult {
  return a === MIN_INT && b === -1n ? new EvaluationFailure('integer overflow') : toInt(a % b);
}

/** `a % b`. */
export function modulo(a: CelValue, b: CelValue): CelResult {
  if (typeof a === 'number' && typeof b === 'number' && b !== 0 && Number.isInteger(a) && Number.isInteger(b)) {
    return (a % b) + 0;
  }
  return calculate(REMAINDER, a, b) ?? noSuchOverload(a, '_%_', isInt(a) || a instanceof CelUint);
}

/** `-a`. */
export function negate(a: CelValue): CelResult {
  if (isInt(a)) {
    return checkedInt(-BigInt(a));
  }
  const double = doubleValue(a);
  if (double !== undefined) {
    return doubleOf(-double);
  }
  return a instanceof CelDuration ? durationOf(-a.nanoseconds) : noSuchOverload(a, '-_', typeof a === 'boolean');
}

/** `!a`. */
export function not(a: CelValue): CelResult {
  return typeof a === 'boolean' ? !a : new EvaluationFailure(NO_SUCH_OVERLOAD);
}

/** `size(a)`. */
export function size(a: CelValue): CelResult {
  if (typeof a === 'string') {
    return codePointCount(a);
  }
  if (isList(a) || a instanceof Uint8Array) {
    return a.length;
  }
  return isMap(a) ? mapSize(a) : noSuchOverload(a, 'size', false);
}

function ordering(operator: string, holds: (order: -1 | 0 | 1) => boolean): (a: CelValue, b: CelValue) => CelResult {
  return (a, b) => {
    if (!isOrdered(a)) {
      return new EvaluationFailure(`${NO_SUCH_OVERLOAD}: ${operator}`);
    }
    const order = compareValues(a, b);
    return typeof order === 'number' ? holds(order) : order;
  };
}

const lessGeneral = ordering('_<_', (order) => order < 0);
const lessOrEqualGeneral = ordering('_<=_', (order) => order <= 0);
const greaterGeneral = ordering('_>_', (order) => order > 0);
const greaterOrEqualGeneral = ordering('_>=_', (order) => order >= 0);

function areOrderedNumbers(a: CelValue, b: CelValue): boolean {
  return typeof a === 'number' && typeof b === 'number' && !Number.isNaN(a) && !Number.isNaN(b);
}

/** `a < b`. */
export function less(a: CelValue, b: CelValue): CelResult {
  return areOrderedNumbers(a, b) ? Number(a) < Number(b) : lessGeneral(a, b);
}

/** `a <= b`. */
export function lessOrEqual(a: CelValue, b: CelValue): CelResult {
  return areOrderedNumbers(a, b) ? Number(a) <= Number(b) : lessOrEqualGeneral(a, b);
}

/** `a > b`. */
export function greater(a: CelValue, b: CelValue): CelResult {
  return areOrderedNumbers(a, b) ? Number(a) > Number(b) : greaterGeneral(a, b);
}

/** `a >= b`. */
export function greaterOrEqual(a: CelValue, b: CelValue): CelResult {
  return areOrderedNumbers(a, b) ? Number(a) >= Number(b) : greaterOrEqualGeneral(a, b);
}

/** Whether a value is the zero value of its type: null, false, 0, empty. */
export function isZero(value: CelValue): boolean {
  switch (typeof value) {
    case 'string':
      return value === '';
    case 'object':
      return isZeroObject(value);
    default:
      return value === false || value === 0;
  }
}

function isZeroObject(value: CelValue & (object | null)): boolean {
  if (value === null) {
    return true;
  }
  if (isList(value) || value instanceof Uint8Array) {
    return value.length === 0;
  }
  if (value instanceof CelDouble || value instanceof CelUint) {
    return Number(value.value) === 0;
  }
  if (value instanceof CelDuration) {
    return value.nanoseconds === 0n;
  }
  if (value instanceof CelTimestamp) {
    // The zero value of Go's `time.Time` is the start of year 1.
    return value.seconds === -62_135_596_800 && value.nanos === 0;
  }
  return isMap(value) ? mapSize(value) === 0 : false;
}
