import { compareValues, doubleOf, doubleValue, isNumeric, MAX_UINT, MIN_INT, toInt } from '../evaluate/index.ts';
import type { FunctionDeclaration, Library, Overload } from '../model/library.ts';
import { BOOL, DOUBLE, DYN, INT, listOf, UINT } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import { CelUint, EvaluationFailure } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { describe, fail, global } from './declare.ts';
import type { Int } from './declare.ts';

const NUMBERS: readonly (readonly [name: string, type: CelType])[] = [
  ['double', DOUBLE],
  ['int', INT],
  ['uint', UINT],
];

const BITS = 64;

/** cel-go's math functions, which API servers do not support. */
export const MATH_EXTENSIONS: Library = {
  name: 'Numbers',
  since: undefined,
  functions: [
    extreme('math.@min', 'The smallest of the numbers.', ['math.least(1, 2.5)', '1'], 1),
    extreme('math.@max', 'The largest of the numbers.', ['math.greatest(1, 2.5)', '2.5'], -1),
    rounding('ceil', 'The double, rounded up.', ['math.ceil(1.2)', '2.0'], Math.ceil),
    rounding('floor', 'The double, rounded down.', ['math.floor(-1.2)', '-2.0'], Math.floor),
    rounding(
      'round',
      'The double, rounded to the nearest integer; halves are rounded away from zero.',
      ['math.round(-1.5)', '-2.0'],
      round,
    ),
    rounding('trunc', 'The double, rounded toward zero.', ['math.trunc(-1.7)', '-1.0'], Math.trunc),
    predicate('isInf', 'Whether a double is infinite.', ['math.isInf(1.0 / 0.0)', 'true'], isInfinite),
    predicate('isNaN', 'Whether a double is not a number.', ['math.isNaN(0.0 / 0.0)', 'true'], Number.isNaN),
    predicate(
      'isFinite',
      'Whether a double is neither infinite nor NaN.',
      ['math.isFinite(1.5)', 'true'],
      Number.isFinite,
    ),
    describe(
      'math.abs',
      'The absolute value.',
      ['math.abs(-1)', '1'],
      [
        global('math_abs_double', [DOUBLE], DOUBLE, (value: CelValue) => doubleOf(Math.abs(numberOf(value)))),
        global('math_abs_int', [INT], INT, absInt),
        global('math_abs_uint', [UINT], UINT, identity),
      ],
    ),
    describe(
      'math.sign',
      'The sign: 1, 0 or -1, with the type of the argument.',
      ['math.sign(-2.5)', '-1.0'],
      [
        global('math_sign_double', [DOUBLE], DOUBLE, signDouble),
        global('math_sign_int', [INT], INT, (value: Int) => Math.sign(Number(value)) + 0),
        global('math_sign_uint', [UINT], UINT, ({ value }: CelUint) => new CelUint(value === 0n ? 0n : 1n)),
      ],
    ),
    describe(
      'math.sqrt',
      'The square root as a double.',
      ['math.sqrt(81)', '9.0'],
      NUMBERS.map(([name, type]) =>
        global(`math_sqrt_${name}`, [type], DOUBLE, (value: CelValue) => doubleOf(Math.sqrt(numberOf(value)))),
      ),
    ),
    bits('bitAnd', 'The bitwise AND.', ['math.bitAnd(6, 3)', '2'], (left, right) => left & right),
    bits('bitOr', 'The bitwise OR.', ['math.bitOr(6, 3)', '7'], (left, right) => left | right),
    bits('bitXor', 'The bitwise XOR.', ['math.bitXor(6, 3)', '5'], (left, right) => left ^ right),
    describe(
      'math.bitNot',
      'The bitwise NOT.',
      ['math.bitNot(1)', '-2'],
      [
        global('math_bitNot_int_int', [INT], INT, (value: Int) => toInt(~BigInt(value))),
        global('math_bitNot_uint_uint', [UINT], UINT, ({ value }: CelUint) => new CelUint(value ^ MAX_UINT)),
      ],
    ),
    shift(
      'bitShiftLeft',
      'The bits, shifted left; the result has 64 bits.',
      ['math.bitShiftLeft(1, 3)', '8'],
      (value, by) => BigInt.asUintN(BITS, value << by),
    ),
    shift(
      'bitShiftRight',
      'The bits, shifted right and filled with zeros.',
      ['math.bitShiftRight(8, 3)', '1'],
      (value, by) => value >> by,
    ),
  ],
};

type Example = readonly [expression: string, result: string];

function identity(value: CelValue): CelValue {
  return value;
}

/**
 * `least` and `greatest`, which macros call. The result of mixed types has the type of the chosen argument.
 * `orderToBetter` is 1 for `least` and -1 for `greatest`, as in `findExtreme` of lists.ts.
 */
function extreme(name: string, summary: string, example: Example, orderToBetter: 1 | -1): FunctionDeclaration {
  const pair = (left: CelValue, right: CelValue) => extremeOfPair(name, left, right, orderToBetter);
  const single = NUMBERS.map(([type, celType]) =>
    global(`math_${name.slice(5)}_${type}`, [celType], celType, identity),
  );
  const pairs = NUMBERS.flatMap(([left, leftType]) =>
    NUMBERS.map(([right, rightType]): Overload => {
      const result = left === right ? leftType : DYN;
      return global(`math_${name.slice(5)}_${left}_${right}`, [leftType, rightType], result, pair);
    }),
  );
  const lists = NUMBERS.map(([type, celType]) =>
    global(`math_${name.slice(5)}_list_${type}`, [listOf(celType)], celType, (list: readonly CelValue[]) =>
      extremeOf(name, list, pair),
    ),
  );
  return describe(name, summary, example, [...single, ...pairs, ...lists]);
}

function extremeOfPair(name: string, left: CelValue, right: CelValue, orderToBetter: 1 | -1): CelResult {
  const order = compareValues(left, right);
  if (order instanceof EvaluationFailure) {
    return order.message.includes(name) ? order : fail(`${order.message}: ${name}`);
  }
  return order === orderToBetter ? right : left;
}

function extremeOf(
  name: string,
  list: readonly CelValue[],
  pair: (left: CelValue, right: CelValue) => CelResult,
): CelResult {
  let best = list[0];
  if (best === undefined) {
    return fail(`${name}(list) argument must not be empty`);
  }
  for (const element of list.slice(1)) {
    const next = pair(best, element);
    if (next instanceof EvaluationFailure) {
      return next;
    }
    best = next;
  }
  return isNumeric(best) ? best : fail(`no such overload: ${name}`);
}

function rounding(name: string, summary: string, example: Example, round: (value: number) => number) {
  return describe(`math.${name}`, summary, example, [
    global(`math_${name}_double`, [DOUBLE], DOUBLE, (value: CelValue) => doubleOf(round(numberOf(value)))),
  ]);
}

function predicate(name: string, summary: string, example: Example, test: (value: number) => boolean) {
  return describe(`math.${name}`, summary, example, [
    global(`math_${name}_double`, [DOUBLE], BOOL, (value: CelValue) => test(numberOf(value))),
  ]);
}

/** Bitwise operations on 64-bit numbers. */
function bits(name: string, summary: string, example: Example, combine: (left: bigint, right: bigint) => bigint) {
  return describe(`math.${name}`, summary, example, [
    global(`math_${name}_int_int`, [INT, INT], INT, (left: Int, right: Int) =>
      toInt(combine(BigInt(left), BigInt(right))),
    ),
    global(
      `math_${name}_uint_uint`,
      [UINT, UINT],
      UINT,
      (left: CelUint, right: CelUint) => new CelUint(combine(left.value, right.value)),
    ),
  ]);
}

function shift(name: string, summary: string, example: Example, move: (value: bigint, by: bigint) => bigint) {
  const moved = (value: bigint, by: Int): bigint | EvaluationFailure => {
    if (by < 0) {
      return fail(`math.${name}() negative offset: ${by}`);
    }
    return by >= BITS ? 0n : move(value, BigInt(by));
  };
  return describe(`math.${name}`, summary, example, [
    global(`math_${name}_int_int`, [INT, INT], INT, (value: Int, by: Int) => {
      const result = moved(BigInt.asUintN(BITS, BigInt(value)), by);
      return result instanceof EvaluationFailure ? result : toInt(BigInt.asIntN(BITS, result));
    }),
    global(`math_${name}_uint_int`, [UINT, INT], UINT, ({ value }: CelUint, by: Int) => {
      const result = moved(value, by);
      return result instanceof EvaluationFailure ? result : new CelUint(result);
    }),
  ]);
}

function numberOf(value: CelValue): number {
  const double = doubleValue(value);
  return double ?? Number(value instanceof CelUint ? value.value : value);
}

function round(value: number): number {
  const whole = Math.trunc(value);
  return Math.abs(value - whole) >= 0.5 ? whole + Math.sign(value) : whole;
}

function isInfinite(value: number): boolean {
  return Math.abs(value) === Infinity;
}

function absInt(value: Int): CelResult {
  if (BigInt(value) === MIN_INT) {
    return fail('integer overflow');
  }
  return value < 0 ? -value : value;
}

function signDouble(value: CelValue): CelResult {
  const number = numberOf(value);
  return Number.isNaN(number) ? value : doubleOf(Math.sign(number) + 0);
}
