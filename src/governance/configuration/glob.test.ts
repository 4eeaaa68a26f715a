import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Glob } from './glob.ts';

/** Cases of Go's own test of `filepath.Match`, and those that names of namespaces need. */
const CASES: readonly (readonly [pattern: string, name: string, matches: boolean])[] = [
  ['', '', true],
  ['', 'a', false],
  ['abc', 'abc', true],
  ['*', 'abc', true],
  ['*', '', true],
  ['*c', 'abc', true],
  ['a*', 'a', true],
  ['a*', 'ab/c', false],
  ['a*/b', 'abc/b', true],
  ['a*/b', 'a/c/b', false],
  ['a*b*c*d*e*/f', 'axbxcxdxe/f', true],
  ['a*b*c*d*e*/f', 'axbxcxdxexxx/fff', false],
  ['a*b?c*x', 'abxbbxdbxebxczzx', true],
  ['a*b?c*x', 'abxbbxdbxebxczzy', false],
  ['ab[c]', 'abc', true],
  ['ab[b-d]', 'abc', true],
  ['ab[e-g]', 'abc', false],
  ['ab[^c]', 'abc', false],
  ['ab[^e-g]', 'abc', true],
  ['a\\*b', 'a*b', true],
  ['a\\*b', 'ab', false],
  ['a?b', 'a☺b', true],
  ['a[^a]b', 'a☺b', true],
  ['a???b', 'a☺b', false],
  ['[a-ζ]*', 'α', true],
  ['*[a-ζ]', 'A', false],
  ['a?b', 'a/b', false],
  ['a*b', 'a/b', false],
  ['[\\]a]', ']', true],
  ['[\\-]', '-', true],
  ['[x\\-]', 'x', true],
  ['[x\\-]', 'z', false],
  ['[\\-x]', 'a', false],
  ['*x', 'xxx', true],
  ['kube-*', 'kube-system', true],
  ['*-*-*', 'a-b', false],
];

describe('a pattern', () => {
  for (const [pattern, name, matches] of CASES) {
    it(`${JSON.stringify(pattern)} ${matches ? 'matches' : 'does not match'} ${JSON.stringify(name)}`, () => {
      assert.equal(new Glob(pattern).matches(name), matches);
    });
  }

  for (const pattern of ['[]a]', '[-]', '[x-]', '[-x]', 'a[', 'a[b', '[^', '[^bc', 'a\\', '[a\\', '*[*', '[', '[a-]']) {
    it(`${JSON.stringify(pattern)} is malformed`, () => {
      assert.throws(() => new Glob(pattern), { code: 'malformed', message: 'syntax error in pattern' });
    });
  }

  it('has a limit', () => {
    assert.throws(() => new Glob('*'.repeat(1_025)), {
      code: 'too-long',
      message: /at most 1024 characters, got 1025/,
    });
  });

  it('of many stars is matched in few steps', () => {
    const glob = new Glob(`${'a*'.repeat(500)}b`);
    assert.equal(glob.matches('a'.repeat(20_000)), false);
  });

  it('equals a regular expression', () => {
    const parts = fc.array(fc.constantFrom('a', 'b', '*', '?', '[ab]', '[^a]'), { maxLength: 6 });
    const names = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 });
    fc.assert(
      fc.property(parts, names, (pattern, name) => {
        const source = pattern.map((part) => (part === '*' ? '[^/]*' : part === '?' ? '[^/]' : part)).join('');
        assert.equal(new Glob(pattern.join('')).matches(name), new RegExp(`^${source}$`, 'u').test(name));
      }),
    );
  });
});
