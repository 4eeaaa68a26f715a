import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseYaml, YamlSyntaxError } from './index.ts';
import { MAX_ALIASED_CHARACTERS, MAX_ALIASED_VALUES } from './alias-bounds.ts';

/** Lines of sequences, each of nine times the one before. */
function bomb(levels: number): string {
  const lines = ['a0: &a0 [x]'];
  for (let level = 1; level <= levels; level++) {
    lines.push(
      `a${level}: &a${level} [${Array(9)
        .fill(`*a${level - 1}`)
        .join()}]`,
    );
  }
  return `${lines.join('\n')}\n`;
}

function chain(links: number): string {
  const lines = ['a0: &a0 [x]'];
  for (let link = 1; link <= links; link++) {
    lines.push(`a${link}: &a${link} [*a${link - 1}]`);
  }
  return lines.join('\n');
}

describe('parseYaml', () => {
  it('rounds large integers, and keeps those of 64 bits where the dialect is exact', () => {
    const text =
      '[9007199254740993, -0x20000000000001, 0400000000000000001, 1_8446744073709551615, 18446744073709551616, 12, -0]';
    const large = 18446744073709552000;
    assert.deepEqual(parseYaml(text), [[9007199254740992, -9007199254740992, 9007199254740992, large, large, 12, -0]]);
    assert.deepEqual(parseYaml(text, 'kubernetes-exact'), [
      [9007199254740993n, -9007199254740993n, 9007199254740993n, 18446744073709551615n, large, 12, -0],
    ]);
  });
});

describe('aliases', () => {
  const rejection = (text: string): YamlSyntaxError => {
    try {
      parseYaml(text);
    } catch (error) {
      assert.ok(error instanceof YamlSyntaxError);
      return error;
    }
    throw new Error('expected an error');
  };

  for (const [what, text, reason] of [
    ['in their own value', 'a: &a\n  b: *a', /\*a stands for a value that it is part of/],
    ['in their own value, through a list', '&a [[1, *a]]', /\*a stands for a value that it is part of/],
    ['in their own key', '&a {? *a : 1}', /\*a stands for a value that it is part of/],
    ['that multiply', bomb(12), new RegExp(`more than ${MAX_ALIASED_VALUES} values`)],
    [
      'of a long text',
      `- &a ${'x'.repeat(MAX_ALIASED_CHARACTERS / 1000)}\n- [${Array(1001).fill('*a').join()}]`,
      /characters/,
    ],
    ['that nest too deep', chain(100), /deeper than 100 levels/],
    ['that multiply over documents', `${bomb(5)}---\n`.repeat(20), /more than/],
  ] as const) {
    it(`${what} are a mistake with a place`, () => {
      const error = rejection(text);
      assert.match(error.message, reason);
      assert.equal(text.charAt(error.offset), '*');
    });
  }

  it('of ordinary files are read', () => {
    assert.deepEqual(parseYaml('a: &a {x: 1}\nb: {<<: *a, z: 2}\nc: [*a, *a]'), [
      { a: { x: 1 }, b: { x: 1, z: 2 }, c: [{ x: 1 }, { x: 1 }] },
    ]);
    assert.equal(parseYaml(chain(97)).length, 1);
    assert.equal(parseYaml(bomb(4)).length, 1);
  });
});

describe('documents', () => {
  it('are at most 100,000', () => {
    assert.throws(() => parseYaml('---\n'.repeat(100_001)), /at most 100000 documents, got 100001/);
  });
});
