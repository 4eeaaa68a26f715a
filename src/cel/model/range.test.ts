import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addRanges, exactly, multiplyRanges, scaleRange, uniteRanges, UNKNOWN_RANGE } from './range.ts';

test('ranges saturate at the maximum integer of API servers', () => {
  assert.deepEqual(addRanges(exactly(2 ** 63), exactly(2 ** 63)), exactly(Infinity));
  assert.deepEqual(multiplyRanges(UNKNOWN_RANGE, exactly(0)), exactly(0));
  assert.deepEqual(multiplyRanges(UNKNOWN_RANGE, exactly(2)), UNKNOWN_RANGE);
});

test('costs are rounded up', () => {
  assert.deepEqual(scaleRange({ min: 1, max: 11 }, 0.1), { min: 1, max: 2 });
  assert.deepEqual(uniteRanges(exactly(1), { min: 0, max: 5 }), { min: 0, max: 5 });
});
