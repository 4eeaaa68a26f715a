import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { toInt } from '../evaluate/index.ts';
import { CelDouble, EvaluationFailure } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { MATH_EXTENSIONS } from './math.ts';

const overloads = MATH_EXTENSIONS.functions.flatMap((declaration) => declaration.overloads);

function call(id: string, ...args: CelValue[]) {
  const overload = overloads.find((one) => one.id === id);
  assert.ok(overload !== undefined, id);
  return overload.call(...args);
}

test('bitwise operations use 64-bit integers', () => {
  const ints = fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n);
  fc.assert(
    fc.property(ints, ints, fc.nat(70), (one, other, by) => {
      assert.equal(call('math_bitXor_int_int', toInt(one), toInt(other)), toInt(one ^ other));
      assert.equal(call('math_bitNot_int_int', toInt(one)), toInt(~one));
      const left = by > 63 ? 0n : BigInt.asIntN(64, one << BigInt(by));
      assert.equal(call('math_bitShiftLeft_int_int', toInt(one), by), toInt(left));
    }),
  );
  assert.ok(call('math_bitShiftLeft_int_int', 1, -1) instanceof EvaluationFailure);
  assert.equal(call('math_bitShiftLeft_int_int', 1, 2n ** 62n), 0);
});

test('halves are rounded away from zero', () => {
  const rounded = [0.5, -0.5, 2.5, 0.49999999999999994].map((value) => call('math_round_double', value));
  assert.deepEqual(
    rounded,
    [1, -1, 3, 0].map((value) => new CelDouble(value)),
  );
});

test('the smallest int has no absolute value', () => {
  assert.ok(call('math_abs_int', -(2n ** 63n)) instanceof EvaluationFailure);
  assert.equal(call('math_abs_int', -5), 5);
});
