import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { applyPatch as applyReference } from 'rfc6902';
import { diff } from '../json-patch.ts';
import type { JsonValue } from '../json-text.ts';
import { applyPatch, MAX_COPIED_BYTES, PatchError, PatchTestFailed } from './json-patch-apply.ts';
import type { PatchStep } from './json-patch-apply.ts';

function step(op: string, path: string, value?: unknown, from = ''): PatchStep {
  return { op, path, from, value };
}

const DOCUMENT = { a: { b: [1, 2, 3], 'x/y': { '~': 0 } }, c: null } as const;

describe('applyPatch', () => {
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
      assert.deepEqual(applyPatch(before, steps), expected);
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
      assert.throws(() => applyPatch(DOCUMENT, [steps]), new PatchError(message));
    });
  }

  it('tells a test that does not hold from everything else', () => {
    assert.throws(() => applyPatch(DOCUMENT, [step('test', '/a/b', [1, 2])]), PatchTestFailed);
    assert.throws(() => applyPatch(DOCUMENT, [step('test', '', {})]), PatchTestFailed);
  });

  it('does not copy without end', () => {
    const long = { a: 'x'.repeat(MAX_COPIED_BYTES / 2) };
    const copies = ['b', 'c', 'd'].map((key) => step('copy', `/${key}`, undefined, '/a'));
    assert.throws(() => applyPatch(long, copies), /accumulated size increase of copy is \d+, exceeding the limit/);
  });

  it('does not share what it copies', () => {
    const steps = [step('copy', '/b', undefined, '/a'), step('add', '/b/x', 1), step('copy', '/c', undefined, '/b')];
    assert.deepEqual(applyPatch({ a: { k: {} } }, [...steps, step('add', '/c/k/y', 2)]), {
      a: { k: {} },
      b: { k: {}, x: 1 },
      c: { k: { y: 2 }, x: 1 },
    });
  });
});

test('a patch from the differ leads where the differ says, as with another implementation', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const before = { root: a as JsonValue };
      const after = { root: b as JsonValue };
      const operations = diff(before, after);
      const steps = operations.map((one) => step(one.op, one.path, 'value' in one ? one.value : undefined));
      const result = applyPatch(before, steps);
      assert.deepEqual(JSON.parse(JSON.stringify(result)), JSON.parse(JSON.stringify(after)));
      // The other implementation takes no notice of these keys.
      fc.pre(!/"(?:__proto__|constructor|prototype)":/.test(JSON.stringify([before, after])));
      const reference = structuredClone(before);
      applyReference(reference, operations);
      assert.deepEqual(JSON.parse(JSON.stringify(reference)), JSON.parse(JSON.stringify(result)));
    }),
    { numRuns: 200 },
  );
});

test('no patch makes it throw anything else', () => {
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
        applyPatch(document, steps);
      } catch (error) {
        assert.ok(error instanceof PatchError, String(error));
      }
      assert.equal(JSON.stringify(document), before);
    }),
    { numRuns: 500 },
  );
});
