import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { canonicalJson, findJsonError, isNestedDeeper } from './json-text.ts';

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test('findJsonError agrees with JSON.parse about what is JSON', () => {
  const token = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"',
    '"a"',
    '1',
    '-',
    '0.5e3',
    '01',
    'true',
    'nul',
    '\\',
    '\n',
    ' ',
  );
  const soup = fc.array(token, { maxLength: 12 }).map((tokens) => tokens.join(''));
  const cut = fc.tuple(fc.json(), fc.nat(40)).map(([json, at]) => json.slice(0, at) + json.slice(at + 1));
  fc.assert(
    fc.property(fc.oneof(soup, cut, fc.json(), fc.string()), (text) => {
      assert.equal(findJsonError(text) === undefined, isJson(text), JSON.stringify(text));
    }),
    { numRuns: 2_000 },
  );
});

for (const [text, offset] of [
  ['', 0],
  ['{"a":1,}', 7],
  ['{"a" 1}', 5],
  ['[1,2', 4],
  ['{"a":tru}', 5],
  ['"a', 0],
  ['"\\x"', 0],
  ['1 2', 2],
] as const) {
  test(`findJsonError points at offset ${offset} of ${JSON.stringify(text)}`, () => {
    assert.equal(findJsonError(text), offset);
  });
}

test('findJsonError takes towers and long strings without running out of stack', () => {
  assert.equal(findJsonError('['.repeat(1_000_000)), 1_000_000);
  assert.equal(findJsonError(`"${'a\\n'.repeat(1_000_000)}"`), undefined);
});

test('isNestedDeeper counts brackets outside of strings', () => {
  assert.equal(isNestedDeeper('[[{"[[[[":1}]]', 3), false);
  assert.equal(isNestedDeeper('[[{"[[[[":1}]]', 2), true);
  assert.equal(isNestedDeeper('[],[],[],[]', 1), false);
  assert.equal(isNestedDeeper('["\\"[[[["]', 1), false);
});

test('canonicalJson is the same for every order of keys, and JSON', () => {
  assert.equal(canonicalJson({ b: [{ d: 1, c: null }], a: 'x' }), canonicalJson({ a: 'x', b: [{ c: null, d: 1 }] }));
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value)));
    }),
  );
});
