import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { formatDuration, parseDuration } from './duration.ts';

describe('formatDuration', () => {
  const cases: readonly (readonly [bigint, string])[] = [
    [0n, '0s'],
    [1n, '1ns'],
    [1_100n, '1.1\u00b5s'],
    [2_200_000n, '2.2ms'],
    [999_999_999n, '999.999999ms'],
    [1_000_000_000n, '1s'],
    [3_300_000_000n, '3.3s'],
    [60_000_000_000n, '1m0s'],
    [245_001_000_000n, '4m5.001s'],
    [1_080_000_000_000_000n, '300h0m0s'],
    [-5_400_000_000_000n, '-1h30m0s'],
    [-(2n ** 63n), '-2562047h47m16.854775808s'],
    [2n ** 63n - 1n, '2562047h47m16.854775807s'],
  ];
  for (const [nanoseconds, text] of cases) {
    it(`prints ${text}`, () => assert.equal(formatDuration(nanoseconds), text));
  }

  it('prints what parses to the same duration', () => {
    // Go computes fractions of a unit in floating point, which is exact for milliseconds.
    const limit = 9_000_000_000_000n;
    fc.assert(
      fc.property(fc.bigInt({ min: -limit, max: limit }), (milliseconds) => {
        const nanoseconds = milliseconds * 1_000_000n;
        assert.equal(parseDuration(formatDuration(nanoseconds)), nanoseconds);
      }),
    );
  });
});
