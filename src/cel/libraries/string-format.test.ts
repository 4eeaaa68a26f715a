import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { CelDouble, EvaluationFailure } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { MAX_WIDTH } from './limits.ts';
import { formatText, parseFormat } from './string-format.ts';

function doubled(levels: number): CelValue {
  let value: CelValue = ['x'];
  for (let level = 0; level < levels; level++) {
    value = [value, value];
  }
  return value;
}

function nested(levels: number): CelValue {
  let value: CelValue = [];
  for (let level = 0; level < levels; level++) {
    value = [value];
  }
  return value;
}

describe('formatting', () => {
  test('prints numbers as in American English', () => {
    const args = [1234567.5, new CelDouble(1500)];
    assert.equal(formatText('%.1f %e', args), '1,234,567.5 1.500000×10⁰³');
  });

  test('of values with shared contents is limited', () => {
    assert.ok(formatText('%s', [doubled(60)]) instanceof EvaluationFailure);
  });

  test('of values nested deeper than the stack allows is an error', () => {
    assert.ok(formatText('%s', [nested(20_000)]) instanceof EvaluationFailure);
  });

  test('limits widths and precisions', () => {
    assert.ok(formatText(`%.${MAX_WIDTH + 1}e`, [1.5]) instanceof EvaluationFailure);
    assert.ok(formatText(`%.${'9'.repeat(100_000)}f`, [1.5]) instanceof EvaluationFailure);
  });

  test('returns a text or an error for any format', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...Array.from('%.sdfebxXo1a9é😀')), maxLength: 12 }), (format) => {
        const text = formatText(format, [1, 'a', 1.5, null, [true], { a: 1 }]);
        assert.ok(typeof text === 'string' || text instanceof EvaluationFailure);
        assert.ok(Array.isArray(parseFormat(format)));
      }),
    );
  });
});
