import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { applyPatch } from 'rfc6902';
import { applyPatchSteps } from '../../resources/index.ts';
import { diff, isEqual } from './json-patch.ts';
import { canonicalJson } from '../values/json-text.ts';
import type { JsonValue } from '../values/json-text.ts';

/** Applies the diff with another implementation, which changes its input and cannot replace the root. */
function apply(before: JsonValue, after: JsonValue): JsonValue {
  // Generated values may contain the same object twice, which the other implementation would change twice.
  const copy = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  const holder = { root: copy(before) as JsonValue };
  const operations = diff(before, after).map((operation) => ({ ...operation, path: `/root${operation.path}` }));
  const results = applyPatch(holder, copy(operations) as Parameters<typeof applyPatch>[1]);
  assert.deepEqual(
    results.filter((result) => result !== null),
    [],
  );
  return holder.root;
}

// The other implementation refuses these names, which are plain keys here (tested below).
const refused = new Set(['__proto__', 'constructor', 'prototype']);
const key = fc
  .oneof(fc.constantFrom('a', 'b', 'a/b', 'm~n', '~1', '', '0', 'ключ', '💥'), fc.string())
  .filter((name) => !refused.has(name));
const { json } = fc.letrec<{ json: JsonValue }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    fc.constantFrom<JsonValue>(null, true, false, 0, 1, -0.5, '', 'x', 'ü💥'),
    fc.array(tie('json'), { maxLength: 5 }),
    fc.dictionary(key, tie('json'), { maxKeys: 5, noNullPrototype: true }),
  ),
}));

test('applying the difference of any two values to the first gives the second', () => {
  fc.assert(
    fc.property(json, json, (before, after) => {
      assert.ok(isEqual(apply(before, after), after));
      assert.equal(canonicalJson(apply(before, after)), canonicalJson(after));
    }),
    { numRuns: 1_000 },
  );
});

test('the difference of lists with small edits can be applied', () => {
  const list = fc.array(fc.constantFrom<JsonValue>(1, 2, { a: 1 }, { a: 2 }, [1]), { maxLength: 8 });
  fc.assert(
    fc.property(list, list, (before, after) => {
      assert.deepEqual(apply(before, after), after);
    }),
    { numRuns: 1_000 },
  );
});

test('equal values have no difference, whatever the order of their keys', () => {
  assert.deepEqual(diff({ a: 1, b: [{ c: 2, d: 3 }] }, { b: [{ d: 3, c: 2 }], a: 1 }), []);
});

test('usual mutations give short patches', () => {
  const pod = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'a' }, { name: 'b' }] } };
  const after = {
    metadata: { labels: { app: 'x', 'example.com/team': 'blue' } },
    spec: { containers: [{ name: 'sidecar' }, { name: 'a' }, { name: 'b' }], hostNetwork: false },
  };
  assert.deepEqual(diff(pod, after), [
    { op: 'add', path: '/metadata/labels/example.com~1team', value: 'blue' },
    { op: 'add', path: '/spec/containers/0', value: { name: 'sidecar' } },
    { op: 'add', path: '/spec/hostNetwork', value: false },
  ]);
  assert.deepEqual(diff([1, 2, 3, 4], [1, 4]), [
    { op: 'remove', path: '/2' },
    { op: 'remove', path: '/1' },
  ]);
});

test('a key named __proto__ is a key', () => {
  const before = JSON.parse('{"x":{"__proto__":{"a":1}}}') as JsonValue;
  const after = JSON.parse('{"x":{"__proto__":{"a":2,"b":3}},"y":{"__proto__":1}}') as JsonValue;
  // An own key __proto__, which an object literal cannot express.
  assert.equal(
    JSON.stringify(diff(before, after)),
    '[{"op":"replace","path":"/x/__proto__/a","value":2},{"op":"add","path":"/x/__proto__/b","value":3},{"op":"add","path":"/y","value":{"__proto__":1}}]',
  );
  assert.equal(Object.hasOwn(Object.prototype, 'a'), false);
});

test('a deeply nested difference gives one replacement', () => {
  const tower = (top: number): JsonValue => JSON.parse('['.repeat(900) + String(top) + ']'.repeat(900)) as JsonValue;
  const operations = diff(tower(1), tower(2));
  assert.equal(operations.length, 1);
  assert.ok((operations[0]?.path.length ?? 999) < 200);
});

test('gives the expected value when it is applied like an API server', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const before = { root: a as JsonValue };
      const after = { root: b as JsonValue };
      const steps = diff(before, after).map((one) => ({
        op: one.op,
        path: one.path,
        from: '',
        value: 'value' in one ? one.value : undefined,
      }));
      const result = applyPatchSteps(before, steps);
      assert.deepEqual(JSON.parse(JSON.stringify(result)), JSON.parse(JSON.stringify(after)));
    }),
    { numRuns: 200 },
  );
});
