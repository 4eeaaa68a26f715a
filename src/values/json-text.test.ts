import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOfJsonString, isNestedDeeper } from './json-text.ts';

test('isNestedDeeper ignores brackets in strings', () => {
  assert.equal(isNestedDeeper('[[{"[[[[":1}]]', 3), false);
  assert.equal(isNestedDeeper('[[{"[[[[":1}]]', 2), true);
  assert.equal(isNestedDeeper('[],[],[],[]', 1), false);
  assert.equal(isNestedDeeper('["\\"[[[["]', 1), false);
});

test('a string ends at its first quote without a backslash, or with the text', () => {
  assert.equal(endOfJsonString('"a\\\\"b', 0), 5);
  assert.equal(endOfJsonString('"a\\"b"', 0), 6);
  assert.equal(endOfJsonString('"a\\', 0), 3);
});
