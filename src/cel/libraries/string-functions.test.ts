import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EvaluationFailure } from '../model/value.ts';
import { CodePoints } from './code-points.ts';
import { MAX_TEXT_LENGTH } from './limits.ts';
import { charAt, indexOf, join, lastIndexOf, quote, replace, split, substring, trim } from './string-functions.ts';

const texts = fc.string({ unit: fc.constantFrom('a', 'b', 'é', '😀', ' '), maxLength: 12 });

describe('positions in strings', () => {
  test('count code points', () => {
    assert.equal(charAt('a😀b', 1), '😀');
    assert.equal(substring('a😀b', 2), 'b');
    assert.equal(indexOf('😀😀b', 'b'), 2);
    assert.equal(lastIndexOf('b😀b', 'b'), 2);
    const points = new CodePoints('a😀b');
    assert.deepEqual(
      [0, 1, 3, 4].map((offset) => points.indexOf(offset)),
      [0, 1, 2, 3],
    );
  });

  test('match those in an array of code points', () => {
    fc.assert(
      fc.property(texts, texts, fc.nat(14), (text, part, offset) => {
        const points = Array.from(text);
        const length = Array.from(part).length;
        const found = points.flatMap((_, at) => (points.slice(at, at + length).join('') === part ? [at] : []));
        if (part !== '') {
          assert.equal(indexOf(text, part, offset), found.find((at) => at >= offset) ?? -1);
          const last = offset >= points.length ? -1 : (found.findLast((at) => at <= offset) ?? -1);
          assert.equal(lastIndexOf(text, part, offset), last);
          assert.equal(lastIndexOf(text, part), found.at(-1) ?? -1);
        }
      }),
      { numRuns: 500 },
    );
  });

  test('out of range are errors, also beyond the safe integers', () => {
    for (const result of [charAt('a', 2), charAt('a', -1n), substring('a', 2n ** 62n), indexOf('a', 'a', -1)]) {
      assert.ok(result instanceof EvaluationFailure);
    }
  });
});

describe('split strings', () => {
  test('are equal to the original when joined', () => {
    fc.assert(
      fc.property(texts, texts, fc.integer({ min: -1, max: 5 }), (text, separator, count) => {
        const parts = split(text, separator, count === 0 ? 1 : count) as string[];
        assert.equal(join(parts, separator), text);
        assert.ok(count < 1 || parts.length <= count);
      }),
    );
  });

  test('have the requested number of replacements', () => {
    fc.assert(
      fc.property(texts, fc.constantFrom('', 'a', 'ab', '😀'), texts, (text, old, by) => {
        const expected = old === '' ? ['', ...Array.from(text), ''].join(by) : text.replaceAll(old, () => by);
        assert.equal(replace(text, old, by), expected);
      }),
    );
    assert.equal(replace('aaa', 'a', 'b', 2), 'bba');
    assert.equal(replace('abc', '', '-', 2), '-a-bc');
  });

  test('are rejected before they are joined to too long strings', () => {
    const long = 'x'.repeat(10_000);
    assert.ok(replace(long, '', long) instanceof EvaluationFailure);
    assert.ok(join(Array<string>(MAX_TEXT_LENGTH / 5_000).fill(long)) instanceof EvaluationFailure);
    assert.ok(join([long, 1]) instanceof EvaluationFailure);
  });
});

test('searching backwards takes less than quadratic time', () => {
  const text = 'a'.repeat(200_000);
  assert.equal(lastIndexOf(text, `${'a'.repeat(100_000)}b`), -1);
  assert.equal(lastIndexOf(text, `b${'a'.repeat(100_000)}`), -1);
});

test('trimming removes Unicode white space', () => {
  assert.equal(trim('\u0085 \u2003a\ufeff\u3000'), 'a\ufeff');
  assert.equal(trim(' '.repeat(100_000)), '');
});

test('quoting escapes characters that CEL literals cannot contain', () => {
  assert.equal(quote('"\\\n\u0007é'), '"\\"\\\\\\n\\aé"');
});
