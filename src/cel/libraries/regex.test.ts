import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { EvaluationFailure } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { REGEX_LIBRARY } from './regex.ts';

function overload(id: string) {
  const found = REGEX_LIBRARY.functions.flatMap(({ overloads }) => overloads).find((one) => one.id === id);
  assert.ok(found !== undefined);
  return found;
}

const find = overload('string_find_string');
const findAll = overload('string_find_all_string');

describe('finding', () => {
  test('returns the same for a literal and a computed pattern', () => {
    const prepared = findAll.prepare?.([undefined, 'a|bb?']);
    assert.ok(typeof prepared === 'function');
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', 'b', '😀'), maxLength: 10 }), (text) => {
        assert.deepEqual(prepared(text, 'a|bb?'), findAll.call(text, 'a|bb?'));
        assert.deepEqual(
          prepared(text, ''),
          Array.from(text.matchAll(/a|bb?/gu), ([match]) => match),
        );
      }),
    );
  });

  test('fails at compile time for an invalid literal pattern', () => {
    assert.ok(find.prepare?.([undefined, '(']) instanceof EvaluationFailure);
    assert.equal(find.prepare?.([undefined, undefined]), undefined);
  });

  test('checks its operands when the pattern is a literal', () => {
    const prepared = find.prepare?.([undefined, 'a']);
    assert.ok(typeof prepared === 'function' && prepared(['a'] as CelValue, 'a') instanceof EvaluationFailure);
  });

  test('takes linear time for patterns that would backtrack', () => {
    assert.equal(find.call(`${'a'.repeat(30)}!`, '^(a+)+$'), '');
  });

  test('of all matches is limited when each match scans the whole text', () => {
    assert.ok(findAll.call('a'.repeat(50_000), 'a*b|a') instanceof EvaluationFailure);
    assert.equal((findAll.call('a '.repeat(1_000), 'a') as string[]).length, 1_000);
  });

  test('returns empty matches, except directly after another match', () => {
    assert.deepEqual(findAll.call('baaac', 'a*'), ['', 'aaa', '']);
    assert.deepEqual(findAll.call('😀', ''), ['', '']);
  });
});
