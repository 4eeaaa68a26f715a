import { add } from '../evaluate/arithmetic.ts';
import { CelDuration, compareValues, isList, isOrdered } from '../evaluate/index.ts';
import type { FunctionDeclaration, Library, Overload } from '../model/library.ts';
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, listOf, parameter, STRING, TIMESTAMP, UINT } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import { CelDouble, CelUint, EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { withBoundedEquality } from './bounded-comparison.ts';
import { describe, fail, member } from './declare.ts';
import { INCLUDES, SEARCH } from './list-costs.ts';

type List = readonly CelValue[];

/** Types with a sum, and the sum of an empty list. */
const SUMMABLE: readonly (readonly [name: string, type: CelType, zero: CelValue])[] = [
  ['int', INT, 0],
  ['uint', UINT, new CelUint(0n)],
  ['double', DOUBLE, new CelDouble(0)],
  ['duration', DURATION, new CelDuration(0n)],
];

/** Types with an order. */
export const COMPARABLE: readonly (readonly [name: string, type: CelType])[] = [
  ['int', INT],
  ['uint', UINT],
  ['double', DOUBLE],
  ['bool', BOOL],
  ['duration', DURATION],
  ['timestamp', TIMESTAMP],
  ['string', STRING],
  ['bytes', BYTES],
];

const T = parameter('A');

/** The list functions of Kubernetes. */
export const LISTS_LIBRARY: Library = {
  name: 'Lists',
  since: 0,
  functions: [
    describe(
      'isSorted',
      'Whether the elements are in ascending order.',
      ['[1, 1, 2].isSorted()', 'true'],
      COMPARABLE.map(([name, type]) => member(`list_${name}_is_sorted_bool`, [listOf(type)], BOOL, isSorted, SEARCH)),
    ),
    describe(
      'sum',
      'The sum of numbers or durations; zero for an empty list.',
      ['[1, 2, 3].sum()', '6'],
      SUMMABLE.map(([name, type, zero]) =>
        member(`list_${name}_sum_${name}`, [listOf(type)], type, (list: List) => sum(list, zero), SEARCH),
      ),
    ),
    extreme('min', 'least', '1', 1),
    extreme('max', 'greatest', '3', -1),
    describe(
      'indexOf',
      'The index of the first occurrence of an element, or -1.',
      ['[1, 2, 2].indexOf(2)', '1'],
      [member('list_a_index_of_int', [listOf(T), T], INT, firstIndex, SEARCH)],
    ),
    describe(
      'lastIndexOf',
      'The index of the last occurrence of an element, or -1.',
      ['[1, 2, 2].lastIndexOf(2)', '2'],
      [member('list_a_last_index_of_int', [listOf(T), T], INT, lastIndex, SEARCH)],
    ),
  ],
};

/** List functions that version 2 of the Kubernetes library added. */
export const LIST_INCLUDES_LIBRARY: Library = {
  name: 'Lists',
  since: 37,
  functions: [
    describe(
      'includes',
      'Whether a list contains an element; for a value that is not a list, whether it equals the argument.',
      ["['a', 'b'].includes('b')", 'true'],
      [member('list_includes_dyn_dyn', [DYN, DYN], BOOL, includes, INCLUDES)],
    ),
  ],
};

function extreme(name: string, kind: string, result: string, orderToBetter: 1 | -1): FunctionDeclaration {
  const find = (list: List) => findExtreme(name, list, orderToBetter);
  const overload = ([type, celType]: (typeof COMPARABLE)[number]): Overload =>
    member(`list_${type}_${name}_${type}`, [listOf(celType)], celType, find, SEARCH);
  return describe(
    name,
    `The ${kind} element; an error for an empty list.`,
    [`[3, 1, 2].${name}()`, result],
    COMPARABLE.map(overload),
  );
}

function isSorted(list: List): CelResult {
  let isFirst = true;
  let previous: CelValue = null;
  for (const element of list) {
    if (!isOrdered(element)) {
      return fail(NO_SUCH_OVERLOAD);
    }
    if (!isFirst && compareValues(previous, element) === 1) {
      return false;
    }
    previous = element;
    isFirst = false;
  }
  return true;
}

function sum(list: List, zero: CelValue): CelResult {
  let total: CelResult = zero;
  for (const element of list) {
    total = add(total, element);
    if (total instanceof EvaluationFailure) {
      return total;
    }
  }
  return total;
}

/**
 * The first smallest or largest element; values that cannot be compared are skipped. `orderToBetter` is 1 for the smallest
 * and -1 for the largest: the order of the best element so far to an element that replaces it.
 */
function findExtreme(name: string, list: List, orderToBetter: 1 | -1): CelResult {
  let best: CelValue | undefined;
  for (const element of list) {
    if (!isOrdered(element)) {
      return fail(NO_SUCH_OVERLOAD);
    }
    if (best === undefined || compareValues(best, element) === orderToBetter) {
      best = element;
    }
  }
  return best === undefined ? fail(`${name} called on empty list`) : best;
}

function firstIndex(list: List, value: CelValue): CelResult {
  return withBoundedEquality((isEqual) => list.findIndex((element) => isEqual(element, value)));
}

function lastIndex(list: List, value: CelValue): CelResult {
  return withBoundedEquality((isEqual) => list.findLastIndex((element) => isEqual(element, value)));
}

function includes(target: CelValue, value: CelValue): CelResult {
  return withBoundedEquality((isEqual) =>
    isList(target) ? target.some((element) => isEqual(element, value)) : isEqual(target, value),
  );
}
