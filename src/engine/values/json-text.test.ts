import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { canonicalJson } from './json-text.ts';

test('canonicalJson is JSON, and independent of the order of keys', () => {
  assert.equal(canonicalJson({ b: [{ d: 1, c: null }], a: 'x' }), canonicalJson({ a: 'x', b: [{ c: null, d: 1 }] }));
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(JSON.parse(canonicalJson(value)), JSON.parse(JSON.stringify(value)));
    }),
  );
});
