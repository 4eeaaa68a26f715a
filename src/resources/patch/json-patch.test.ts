import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { createPatch } from 'rfc6902';
import type { JsonValue } from '../../values/index.ts';
import { applyJsonPatch, applyPatchSteps, MAX_COPIED_BYTES, MAX_JSON_PATCH_OPERATIONS } from './json-patch.ts';
import type { PatchStep } from './json-patch.ts';
import { PatchError } from './patch-error.ts';

function step(op: string, path: string, value?: unknown, from = ''): PatchStep {
  return { op, path, from, value };
}

const DOCUMENT = { a: { b: [1, 2, 3], 'x/y': { '~': 0 } }, c: null } as const;

describe('applyPatchSteps', () => {
  for (const [steps, expected] of [
    [[step('add', '/a/b/-', 4)], { ...DOCUMENT, a: { ...DOCUMENT.a, b: [1, 2, 3, 4] } }],
    [[step('add', '/a/b/0', 0)], { ...DOCUMENT, a: { ...DOCUMENT.a, b: [0, 1, 2, 3] } }],
    [[step('add', '/a/b/-1', 9)], { ...DOCUMENT, a: { ...DOCUMENT.a, b: [1, 2, 3, 9] } }],
    [[step('replace', '/a/b/-1', 9)], { ...DOCUMENT, a: { ...DOCUMENT.a, b: [1, 2, 9] } }],
    [[step('replace', '/new', 9)], { ...DOCUMENT, new: 9 }],
    [[step('replace', '/a/x~1y/~0', 9)], { ...DOCUMENT, a: { ...DOCUMENT.a, 'x/y': { '~': 9 } } }],
    [[step('move', '/d', undefined, '/a/b')], { a: { 'x/y': { '~': 0 } }, c: null, d: [1, 2, 3] }],
    [[step('copy', '/d', undefined, '/a/b'), step('add', '/d/-', 4)], { ...DOCUMENT, d: [1, 2, 3, 4] }],
    [[step('test', '/a/b', [1, 2, 3]), step('remove', '/c')], { a: DOCUMENT.a }],
    [[step('test', '/c', null), step('test', '/nothing', null), step('remove', '/c')], { a: DOCUMENT.a }],
    [
      [step('add', '/__proto__', { x: 1 })],
      JSON.parse('{"a":{"b":[1,2,3],"x/y":{"~":0}},"c":null,"__proto__":{"x":1}}'),
    ],
  ] as const) {
    it(`applies ${JSON.stringify(steps)}`, () => {
      const before = structuredClone(DOCUMENT);
      assert.deepEqual(applyPatchSteps(before, steps), expected);
      assert.deepEqual(before, DOCUMENT, 'the document stays as it was');
    });
  }

  for (const [steps, message] of [
    [step('add', '/x/y', 1), 'add operation does not apply: doc is missing path: "/x/y": missing value'],
    [step('add', '', 1), 'add operation does not apply: doc is missing path: "": missing value'],
    [
      step('add', '/a/b/4', 1),
      "error in add for path: '/a/b/4': Unable to access invalid index: 4: invalid index referenced",
    ],
    [
      step('add', '/a/b/x', 1),
      `error in add for path: '/a/b/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax`,
    ],
    [step('remove', '/x'), "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value"],
    [step('replace', '/a/b/3', 1), 'replace operation does not apply: doc is missing key: /a/b/3: missing value'],
    [step('merge', '/a'), 'Unexpected kind: merge'],
    [step('add', '/toString/x', 1), 'add operation does not apply: doc is missing path: "/toString/x": missing value'],
  ] as const) {
    it(`refuses ${JSON.stringify(steps)}`, () => {
      assert.throws(() => applyPatchSteps(DOCUMENT, [steps]), new PatchError('does-not-apply', message));
    });
  }

  it('distinguishes a failed test from other errors', () => {
    assert.throws(() => applyPatchSteps(DOCUMENT, [step('test', '/a/b', [1, 2])]), { code: 'test-failed' });
    assert.throws(() => applyPatchSteps(DOCUMENT, [step('test', '', {})]), { code: 'test-failed' });
  });

  it('limits the size of copies', () => {
    const long = { a: 'x'.repeat(MAX_COPIED_BYTES / 2) };
    const copies = ['b', 'c', 'd'].map((key) => step('copy', `/${key}`, undefined, '/a'));
    assert.throws(() => applyPatchSteps(long, copies), /accumulated size increase of copy is \d+, exceeding the limit/);
  });

  it('copies values deeply', () => {
    const steps = [step('copy', '/b', undefined, '/a'), step('add', '/b/x', 1), step('copy', '/c', undefined, '/b')];
    assert.deepEqual(applyPatchSteps({ a: { k: {} } }, [...steps, step('add', '/c/k/y', 2)]), {
      a: { k: {} },
      b: { k: {}, x: 1 },
      c: { k: { y: 2 }, x: 1 },
    });
  });
});

describe('applyJsonPatch', () => {
  for (const [operations, code, message] of [
    [[1], 'malformed', 'json: cannot unmarshal number into Go value of type jsonpatch.Operation'],
    [[{}], 'does-not-apply', 'Unexpected kind: unknown'],
    [[{ op: 'add', value: 1 }], 'does-not-apply', 'add operation failed to decode path: missing value'],
    [
      [{ op: 'replace', value: 1 }],
      'does-not-apply',
      'replace operation failed to decode path: operation missing path field: missing value',
    ],
    [
      [{ op: 'move', path: '/a' }],
      'does-not-apply',
      'move operation failed to decode from: operation, missing from field: missing value',
    ],
    [
      Array.from({ length: MAX_JSON_PATCH_OPERATIONS + 1 }, () => ({ op: 'test', path: '/c', value: null })),
      'too-large',
      'The allowed maximum operations in a JSON patch is 10000, got 10001',
    ],
  ] as const) {
    it(`refuses ${JSON.stringify(operations).slice(0, 60)}`, () => {
      assert.throws(() => applyJsonPatch({ c: null }, operations), { code, message });
    });
  }

  it('treats a missing value as null', () => {
    assert.deepEqual(applyJsonPatch({}, [{ op: 'add', path: '/a' }]), { a: null });
  });
});

test('patches of another implementation give the expected result', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const before = { root: a as JsonValue };
      const after = { root: b as JsonValue };
      // The other implementation ignores these keys.
      fc.pre(!/"(?:__proto__|constructor|prototype)":/.test(JSON.stringify([before, after])));
      const operations = JSON.parse(JSON.stringify(createPatch(before, after))) as JsonValue[];
      const result = applyJsonPatch(before, operations);
      assert.deepEqual(JSON.parse(JSON.stringify(result)), JSON.parse(JSON.stringify(after)));
    }),
    { numRuns: 200 },
  );
});

test('any patch applies or throws a PatchError', () => {
  const path = fc.array(fc.constantFrom('', '0', '-', '-1', '99', 'a', 'b', '~1', '__proto__', 'length'), {
    maxLength: 4,
  });
  const one = fc.record({
    op: fc.constantFrom('add', 'remove', 'replace', 'move', 'test', 'copy', '?'),
    path: path.map((parts) => parts.map((part) => `/${part}`).join('')),
    from: path.map((parts) => parts.map((part) => `/${part}`).join('')),
    value: fc.option(fc.jsonValue({ maxDepth: 2 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 3 }), fc.array(one, { maxLength: 6 }), (document, steps) => {
      const before = JSON.stringify(document);
      try {
        applyPatchSteps(document, steps);
      } catch (error) {
        assert.ok(error instanceof PatchError, String(error));
      }
      assert.equal(JSON.stringify(document), before);
    }),
    { numRuns: 500 },
  );
});
