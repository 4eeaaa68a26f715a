import { addRanges, exactly, multiplyRanges, scaleRange } from '../model/range.ts';
import { CALL_COST } from '../model/library.ts';
import type { Library, Overload } from '../model/library.ts';
import { BOOL, listOf, parameter } from '../model/type.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { ValueSet, withBoundedEquality } from './bounded-comparison.ts';
import { rangeOf, sizeOfArgument } from './costs.ts';
import { describe, global } from './declare.ts';

type List = readonly CelValue[];

const T = listOf(parameter('T'));

/** Compares each element of one list with each element of the other, once or in both directions. */
function product(ways: 1 | 2): Pick<Overload, 'cost' | 'costById' | 'estimate'> {
  return {
    cost: (args) => CALL_COST + sizeOfArgument(args, 0) * sizeOfArgument(args, 1) * ways,
    costById: true,
    estimate: (sizes) => ({
      cost: addRanges(scaleRange(multiplyRanges(rangeOf(sizes, 0), rangeOf(sizes, 1)), ways), exactly(CALL_COST)),
    }),
  };
}

/** Lists used as sets. */
export const SETS_LIBRARY: Library = {
  name: 'Sets',
  since: 29,
  functions: [
    describe(
      'sets.contains',
      'Whether the first list contains every element of the second.',
      ['sets.contains([1, 2, 3], [2, 2])', 'true'],
      [global('list_sets_contains_list', [T, T], BOOL, contains, product(1))],
    ),
    describe(
      'sets.equivalent',
      'Whether each list contains every element of the other.',
      ['sets.equivalent([1, 2], [2, 1, 1])', 'true'],
      [global('list_sets_equivalent_list', [T, T], BOOL, equivalent, product(2))],
    ),
    describe(
      'sets.intersects',
      'Whether the lists have an element in common.',
      ['sets.intersects([1, 2], [2, 3])', 'true'],
      [global('list_sets_intersects_list', [T, T], BOOL, intersects, product(1))],
    ),
  ],
};

function contains(list: List, part: List): CelResult {
  return withBoundedEquality((isEqual) => {
    const set = new ValueSet(isEqual, list);
    return part.every((value) => set.has(value));
  });
}

function equivalent(left: List, right: List): CelResult {
  const isContained = contains(left, right);
  return isContained === true ? contains(right, left) : isContained;
}

function intersects(left: List, right: List): CelResult {
  return withBoundedEquality((isEqual) => {
    const set = new ValueSet(isEqual, right);
    return left.some((value) => set.has(value));
  });
}
