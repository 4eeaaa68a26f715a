import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import { MAX_PATTERN_LENGTH, MAX_PATTERN_SIZE, patternProblem, patternSize } from './pattern-size.ts';

const ITEMS =
  String.raw`a é 😀 . \d \pL \x41 \x{1F600} \101 \. \Qa(b\E ^ $ \b - ] [a-z] []a] [^]a\]] [[:alpha:]_] [(] { x{ {,2} (?i)`.split(
    ' ',
  );
const REPETITIONS = ['*', '+', '?', '{3}', '{0,4}', '{2,}', '{0}', '{1,2}?', '{9,3}'];

/** Patterns over the whole grammar, most of them valid. */
const patterns = fc.letrec<{ pattern: string }>((tie) => ({
  pattern: fc.oneof(
    { maxDepth: 5 },
    fc.constantFrom(...ITEMS),
    fc.array(tie('pattern'), { maxLength: 4 }).map((parts) => parts.join('')),
    fc.array(tie('pattern'), { minLength: 1, maxLength: 4 }).map((parts) => `(${parts.join('|')})`),
    fc.tuple(fc.constantFrom('(?:', '(', '(?P<n>', '(?i:'), tie('pattern')).map(([open, inner]) => `${open}${inner})`),
    fc.tuple(tie('pattern'), fc.constantFrom(...REPETITIONS)).map(([inner, repetition]) => `(?:${inner})${repetition}`),
    fc
      .tuple(fc.constantFrom(...ITEMS), fc.constantFrom(...REPETITIONS, '{0,40}', '{700}'))
      .map((parts) => parts.join('')),
  ),
})).pattern;

describe('the size of a regular expression', () => {
  it('is never less than the number of instructions', () => {
    let valid = 0;
    fc.assert(
      fc.property(patterns, (pattern) => {
        const compiled = compile(pattern);
        valid += compiled === undefined ? 0 : 1;
        assert.ok((compiled?.programSize() ?? 0) <= patternSize(pattern), pattern);
      }),
      { numRuns: 3_000 },
    );
    assert.ok(valid > 1_500, `only ${valid} patterns were valid`);
  });

  it('is close to the number of instructions of usual patterns', () => {
    for (const pattern of [
      '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*$',
      '^(?:registry\\.example\\.com|[a-z.]+)/[^@:]+(?:@sha256:[0-9a-f]{64}|:v\\d+\\.\\d+\\.\\d+)$',
      '^\\d{4}-\\d{2}-\\d{2}T[0-9:.]+(?:Z|[+-]\\d{2}:\\d{2})$',
    ]) {
      const size = compile(pattern)?.programSize() ?? 0;
      assert.ok(patternSize(pattern) <= 1.5 * size, `${pattern}: ${patternSize(pattern)}, ${size} instructions`);
      assert.equal(patternProblem(pattern), undefined);
    }
  });

  it('is limited, by the text alone', () => {
    assert.equal(patternProblem(`a{${MAX_PATTERN_SIZE / 20}}`), undefined);
    assert.match(patternProblem('a{1000}'.repeat(20)) ?? '', /^expression is too large: expected at most 10000 /);
    assert.match(patternProblem('((a{10}){10}){1000}') ?? '', /too large/);
    assert.match(patternProblem('a'.repeat(MAX_PATTERN_LENGTH + 1)) ?? '', /longer than 10000 characters$/);
  });

  it('is a number for any text', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(...'( ) [ ] { } \\ ? : < > | * + p Q E , 0 1 5 9 a ^'.split(' ')) }),
        (text) => Number.isFinite(patternSize(text)),
      ),
    );
  });
});

function compile(pattern: string): RE2JS | undefined {
  try {
    return RE2JS.compile(pattern);
  } catch {
    return undefined;
  }
}
