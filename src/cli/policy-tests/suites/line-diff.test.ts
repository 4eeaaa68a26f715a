import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { lineDiff } from './line-diff.ts';

describe('lineDiff', () => {
  const lines = fc.array(fc.constantFrom('a', 'b', 'c', ''), { minLength: 1, maxLength: 30 });

  it('shows both texts, line by line', () => {
    fc.assert(
      fc.property(lines, lines, (a, b) => {
        const expected = [...a, 'end'];
        const actual = [...b, 'end'];
        const difference = lineDiff(expected.join('\n'), actual.join('\n'));
        if (difference.some(({ kind }) => kind === 'gap')) {
          return;
        }
        const side = (other: string): string[] =>
          difference.filter(({ kind }) => kind !== other).map(({ text }) => text);
        assert.deepEqual(side('actual'), expected);
        assert.deepEqual(side('expected'), actual);
      }),
    );
  });

  it('leaves out what is far from a difference', () => {
    const many = Array.from({ length: 50 }, (_, index) => `line ${index}`);
    const difference = lineDiff(many.join('\n'), many.with(20, 'other').join('\n'));
    assert.deepEqual(
      difference.map(({ kind, text }) => `${kind[0]} ${text}`),
      [
        'g …',
        's line 17',
        's line 18',
        's line 19',
        'e line 20',
        'a other',
        's line 21',
        's line 22',
        's line 23',
        'g …',
      ],
    );
  });

  it('copes with texts that have nothing in common', () => {
    const [a, b] = ['a', 'b'].map((letter) =>
      Array.from({ length: 5_000 }, (_, index) => `${letter}${index}`).join('\n'),
    );
    assert.equal(lineDiff(a ?? '', b ?? '').length, 10_000);
  });
});
