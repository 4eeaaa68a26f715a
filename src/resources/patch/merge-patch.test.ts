import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { isJsonObject, type JsonObject, type JsonValue } from '../../values/index.ts';
import { applyMergePatch } from './merge-patch.ts';
import { MAX_PATCH_DEPTH } from './patch-error.ts';

describe('applyMergePatch', () => {
  // The examples of RFC 7386 that are objects.
  for (const [object, patch, expected] of [
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
    // Not in the RFC: null fields of objects in lists are dropped, null elements of lists stay.
    [{}, { a: [{ b: null }, null] }, { a: [{}, null] }],
  ] as const) {
    it(`makes ${JSON.stringify(expected)} of ${JSON.stringify(object)} and ${JSON.stringify(patch)}`, () => {
      assert.deepEqual(applyMergePatch(object as JsonObject, patch as JsonObject), expected);
    });
  }

  it('shares unchanged parts', () => {
    const object = { a: { b: [1] }, c: { d: 1 } };
    const result = applyMergePatch(object, { c: { d: 2 } });
    assert.equal(result['a'], object.a);
    assert.equal(applyMergePatch(object, { c: { d: 1 }, e: null }), object);
  });

  it('keeps keys of any name', () => {
    const patch = JSON.parse('{"__proto__":{"x":1},"constructor":{"y":null}}') as JsonObject;
    assert.equal(JSON.stringify(applyMergePatch({}, patch)), '{"__proto__":{"x":1},"constructor":{}}');
    assert.equal(({} as { x?: number }).x, undefined);
  });

  it('rejects patches that are nested too deeply', () => {
    let deep: JsonObject = {};
    for (let depth = 0; depth < MAX_PATCH_DEPTH + 1; depth++) {
      deep = { a: deep };
    }
    assert.throws(() => applyMergePatch({}, deep), { code: 'malformed', message: /nested deeper than 1000 levels/ });
  });
});

test('a merge patch changes neither of its inputs, and follows the RFC', () => {
  const scalar = fc.constantFrom<JsonValue>(null, true, 0, 'x', '');
  const { json } = fc.letrec<{ json: JsonValue }>((tie) => ({
    // Lists have scalars only, because API servers differ from the RFC for objects in lists.
    json: fc.oneof({ maxDepth: 4 }, scalar, fc.array(scalar, { maxLength: 2 }), fc.dictionary(key, tie('json'))),
  }));
  fc.assert(
    fc.property(fc.dictionary(key, json), fc.dictionary(key, json), (object, patch) => {
      const before = JSON.stringify([object, patch]);
      const result = applyMergePatch(object, patch);
      assert.equal(JSON.stringify([object, patch]), before);
      assert.deepEqual(normal(result), normal(ofTheRfc(object, patch)));
    }),
    { numRuns: 300 },
  );
});

const key = fc.constantFrom('a', 'b', '__proto__');

function ofTheRfc(target: JsonValue | undefined, patch: JsonValue): JsonValue {
  if (!isJsonObject(patch)) {
    return patch;
  }
  const result = new Map(isJsonObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) {
      result.delete(key);
    } else {
      result.set(key, ofTheRfc(result.get(key), value));
    }
  }
  return Object.fromEntries(result);
}

function normal(value: JsonValue): unknown {
  return JSON.parse(JSON.stringify(value));
}
