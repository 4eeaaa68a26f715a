import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { canonicalJson, isNestedDeeper } from './json-text.ts';

test('isNestedDeeper ignores brackets in strings', () => {
  assert.equal(isNestedDeeper('[[{"[[[[":1}]]', 3), false);
  assert.equal(isNestedDeeper('[[{"[[[[":1}]]', 2), true);
  assert.equal(isNestedDeeper('[],[],[],[]', 1), false);
  assert.equal(isNestedDeeper('["\\"[[[["]', 1), false);
});

test('canonicalJson is JSON, and independent of the order of keys', () => {
  assert.equal(canonicalJson({ b: [{ d: 1, c: null }], a: 'x' }), canonicalJson({ a: 'x', b: [{ c: null, d: 1 }] }));
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value)));
    }),
  );
});
