import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { formatFloat } from './float.ts';

describe('formatFloat', () => {
  test('writes the shortest text that reads back, with an exponent from 1e+06 on', () => {
    const values = [1, 1.5, 1e6, 123456, 1234567, 1e21, 1e-5, 0.0001, -0, Infinity, -Infinity, Number.NaN];
    assert.deepEqual(
      values.map((value) => formatFloat(value, 'g')),
      ['1', '1.5', '1e+06', '123456', '1.234567e+06', '1e+21', '1e-05', '0.0001', '-0', '+Inf', '-Inf', 'NaN'],
    );
  });

  test('rounds the exact value, halves to even', () => {
    assert.deepEqual(
      [0.5, 1.5, 2.5, 0.125].map((value) => formatFloat(value, 'f', 0)),
      ['0', '2', '2', '0'],
    );
    assert.equal(formatFloat(0.1, 'f', 20), '0.10000000000000000555');
    assert.equal(formatFloat(5e-324, 'f', 1074).slice(-3), '625');
    assert.equal(formatFloat(9.999, 'e', 1), '1.0e+01');
  });

  test('differs from toFixed in halves only', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 1e20, noNaN: true }), fc.nat(20), (value, precision) => {
        const text = formatFloat(Math.abs(value), 'f', precision);
        assert.ok(text === value.toFixed(precision) || Number(`${value}5`) === 0 || (value * 2 ** 60) % 1 === 0);
      }),
    );
  });

  test('without a precision, reads back as the same double', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        for (const verb of ['e', 'f', 'g'] as const) {
          assert.ok(Object.is(Number(formatFloat(value, verb)), value));
        }
        assert.ok(!formatFloat(value, 'f').includes('e'));
      }),
    );
  });
});
