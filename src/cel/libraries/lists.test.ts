import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CelDouble, EvaluationFailure } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { MAX_LIST_LENGTH } from './limits.ts';
import { LIST_EXTENSIONS_LIBRARY } from './list-extensions.ts';
import { traversalCost } from './list-costs.ts';
import { LIST_INCLUDES_LIBRARY, LISTS_LIBRARY } from './lists.ts';
import { SETS_LIBRARY } from './sets.ts';

const overloads = [LISTS_LIBRARY, LIST_EXTENSIONS_LIBRARY, LIST_INCLUDES_LIBRARY, SETS_LIBRARY].flatMap(
  ({ functions }) => functions.flatMap((declaration) => declaration.overloads),
);

function call(id: string, ...args: CelValue[]) {
  const overload = overloads.find((one) => one.id === id);
  assert.ok(overload !== undefined, id);
  return overload.call(...args);
}

function doubled(levels: number): CelValue[] {
  let value: CelValue[] = [{ a: 1 }];
  for (let level = 0; level < levels; level++) {
    value = [value, value];
  }
  return value;
}

const ints = fc.array(fc.integer({ min: -5, max: 5 }), { maxLength: 30 });

describe('lists', () => {
  test('of ints behave like arrays in JavaScript', () => {
    fc.assert(
      fc.property(ints, ints, (one, other) => {
        assert.deepEqual(
          call('list_int_sort', one),
          one.toSorted((a, b) => a - b),
        );
        assert.deepEqual(call('list_distinct', one), [...new Set(one)]);
        assert.equal(
          call('list_int_sum_int', one),
          one.reduce((sum, value) => sum + value, 0),
        );
        assert.equal(
          call('list_sets_contains_list', one, other),
          other.every((value) => one.includes(value)),
        );
        assert.equal(
          call('list_sets_intersects_list', one, other),
          other.some((value) => one.includes(value)),
        );
        assert.equal(
          call('list_int_is_sorted_bool', one),
          one.every((value, index) => index === 0 || value >= (one[index - 1] ?? 0)),
        );
      }),
    );
  });

  test('treat equal numbers of different types as the same value', () => {
    assert.deepEqual(call('list_distinct', [1, new CelDouble(1), 2n ** 60n, new CelDouble(2 ** 60)]), [1, 2n ** 60n]);
    assert.deepEqual((call('list_distinct', [Number.NaN, Number.NaN]) as CelValue[]).length, 2);
    assert.equal(call('list_includes_dyn_dyn', [1], new CelDouble(1)), true);
  });

  test('with many scalars are compared in linear time', () => {
    const many = Array.from({ length: 100_000 }, (_, index) => index);
    assert.equal(call('list_sets_equivalent_list', many, many.toReversed()), true);
    assert.equal((call('list_distinct', many) as CelValue[]).length, many.length);
  });

  test('with many values that are not scalars are rejected', () => {
    const many = Array.from({ length: 100_000 }, (_, index) => [index]);
    assert.ok(call('list_distinct', many) instanceof EvaluationFailure);
    assert.ok(call('list_sets_contains_list', many, many.toReversed()) instanceof EvaluationFailure);
  });

  test('with shared contents are limited when flattened or compared', () => {
    assert.ok(call('list_flatten_int', doubled(60), 100) instanceof EvaluationFailure);
    assert.ok(call('list_a_index_of_int', [doubled(60)], doubled(60)) instanceof EvaluationFailure);
    assert.equal(traversalCost(doubled(60)), Infinity);
  });

  test('nested deeper than the stack allows can be flattened', () => {
    let deep: CelValue[] = [1];
    for (let level = 0; level < 50_000; level++) {
      deep = [deep];
    }
    assert.deepEqual(call('list_flatten_int', deep, 100_000), [1]);
  });

  test('are sorted by keys with a stable sort', () => {
    assert.deepEqual(call('list_int_sortByAssociatedKeys', ['a', 'b', 'c'], [2, 1, 1]), ['b', 'c', 'a']);
    assert.ok(call('list_int_sortByAssociatedKeys', ['a'], [1, 2]) instanceof EvaluationFailure);
    assert.ok(call('list_int_sort', [1, 'a']) instanceof EvaluationFailure);
  });

  test('of a range have a maximum length', () => {
    assert.equal((call('lists_range', MAX_LIST_LENGTH) as CelValue[]).length, MAX_LIST_LENGTH);
    assert.ok(call('lists_range', MAX_LIST_LENGTH + 1) instanceof EvaluationFailure);
    assert.ok(call('lists_range', 2n ** 62n) instanceof EvaluationFailure);
  });
});
