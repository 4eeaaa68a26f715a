import assert from 'node:assert/strict';
import { describe, it, test } from 'node:test';
import fc from 'fast-check';
import { MAX_PATCH_DEPTH, PatchError } from '../../resources/index.ts';
import type { JsonObject, JsonValue, Schema } from '../../resources/index.ts';
import { applyStrategicMergePatch } from './strategic-merge-patch.ts';

const text: Schema = { type: 'string' };
const SCHEMA: Schema = {
  type: 'object',
  properties: {
    name: text,
    labels: { type: 'object', additionalProperties: text },
    args: { type: 'array', items: text },
    finalizers: { type: 'array', items: text, 'x-kubernetes-patch-strategy': 'merge' },
    containers: {
      type: 'array',
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'name',
      items: {
        allOf: [
          {
            type: 'object',
            properties: {
              name: text,
              image: text,
              ports: {
                type: 'array',
                'x-kubernetes-patch-strategy': 'merge',
                'x-kubernetes-patch-merge-key': 'containerPort',
                items: { type: 'object', properties: { containerPort: { type: 'integer' }, protocol: text } },
              },
            },
          },
        ],
      },
    },
    strategy: {
      type: 'object',
      'x-kubernetes-patch-strategy': 'retainKeys',
      properties: { type: text, rollingUpdate: { type: 'object', properties: { max: { type: 'integer' } } } },
    },
    whole: { type: 'object', 'x-kubernetes-patch-strategy': 'replace', properties: { a: text, b: text } },
  },
};

const a = { name: 'a', image: 'a:1' };
const b = { name: 'b', image: 'b:1' };
const c = { name: 'c', image: 'c:1' };

describe('applyStrategicMergePatch', () => {
  for (const [name, object, patch, expected] of [
    [
      'merges objects',
      { name: 'x', labels: { a: '1' } },
      { labels: { b: '2' } },
      { name: 'x', labels: { a: '1', b: '2' } },
    ],
    ['removes what is null', { name: 'x', labels: { a: '1' } }, { labels: { a: null }, name: null }, { labels: {} }],
    ['replaces lists', { args: ['a'] }, { args: ['b'] }, { args: ['b'] }],
    ['joins lists of scalars', { finalizers: ['a', 'b'] }, { finalizers: ['c', 'a'] }, { finalizers: ['c', 'a', 'b'] }],
    [
      'removes from lists of scalars',
      { finalizers: ['a', 'b'] },
      { '$deleteFromPrimitiveList/finalizers': ['a'] },
      { finalizers: ['b'] },
    ],
    [
      'merges elements by their key and adds new ones',
      { containers: [a, b] },
      { containers: [c, { name: 'b', image: 'b:2' }] },
      { containers: [c, a, { name: 'b', image: 'b:2' }] },
    ],
    [
      'deletes elements',
      { containers: [a, b] },
      { containers: [{ $patch: 'delete', name: 'a' }] },
      { containers: [b] },
    ],
    [
      'replaces lists of objects',
      { containers: [a, b] },
      { containers: [{ $patch: 'replace' }, c] },
      { containers: [c] },
    ],
    [
      'brings elements into order',
      { containers: [a, b, c] },
      { '$setElementOrder/containers': [{ name: 'c' }, { name: 'a' }], containers: [{ name: 'a', image: 'a:2' }] },
      { containers: [b, c, { name: 'a', image: 'a:2' }] },
    ],
    [
      'orders a list that it does not change',
      { finalizers: ['a', 'b'] },
      { '$setElementOrder/finalizers': ['b', 'a'] },
      { finalizers: ['b', 'a'] },
    ],
    [
      'goes into elements',
      { containers: [{ ...a, ports: [{ containerPort: 1, protocol: 'TCP' }] }] },
      { containers: [{ name: 'a', ports: [{ containerPort: 1, protocol: 'UDP' }, { containerPort: 2 }] }] },
      { containers: [{ ...a, ports: [{ containerPort: 1, protocol: 'UDP' }, { containerPort: 2 }] }] },
    ],
    [
      'retains only the keys that it names',
      { strategy: { type: 'RollingUpdate', rollingUpdate: { max: 1 } } },
      { strategy: { $retainKeys: ['type'], type: 'Recreate' } },
      { strategy: { type: 'Recreate' } },
    ],
    [
      'replaces objects on demand',
      { labels: { a: '1' } },
      { labels: { $patch: 'replace', b: '2' } },
      { labels: { b: '2' } },
    ],
    ['empties objects on demand', { labels: { a: '1' } }, { labels: { $patch: 'delete' } }, { labels: {} }],
    ['replaces objects whose schema says so', { whole: { a: '1' } }, { whole: { b: '2' } }, { whole: { b: '2' } }],
    [
      'drops nulls and directives of what is new',
      {},
      { labels: { a: null, b: '1' }, whole: { $patch: 'delete' } },
      { labels: { b: '1' } },
    ],
  ] as const) {
    it(name, () => {
      assert.deepEqual(applyStrategicMergePatch(object as JsonObject, patch as JsonObject, SCHEMA), expected);
    });
  }

  for (const [patch, code, message] of [
    [{ $patch: 'merge' }, 'failed', 'unknown patch type: merge in map: map[$patch:merge]'],
    [{ containers: [{ image: 'x' }] }, 'failed', 'map: map[image:x] does not contain declared merge key: name'],
    [{ containers: [{ name: 'a', $patch: 'merge' }] }, 'failed', 'merging lists cannot yet be specified in the patch'],
    [{ containers: [['x']] }, 'does-not-apply', 'lists of lists are not supported'],
    [{ containers: ['x'] }, 'failed', /^list element types are not identical: \[\[map\[image:a:1 name:a\] x\]\]$/],
    [{ $retainKeys: ['name'], labels: {} }, 'malformed', 'invalid patch format of retainKeys'],
    [{ '$setElementOrder-containers': [] }, 'malformed', 'invalid patch format of setElementOrder list'],
    [{ $deleteFromPrimitiveList: [] }, 'malformed', 'invalid patch format of primitive list'],
    [
      { '$setElementOrder/containers': {} },
      'failed',
      'expected a []interface {}, but received a map[string]interface {}',
    ],
    [
      { '$setElementOrder/containers': [{ name: 'b' }], containers: [a] },
      'failed',
      /^The order in patch list:\n\[map\[image:a:1 name:a\]\]\n doesn't match \$setElementOrder list:/,
    ],
    [{ unknown: ['x'] }, 'failed', 'unable to find api field in struct for the json field "unknown"'],
  ] as const) {
    it(`refuses ${JSON.stringify(patch)}`, () => {
      const object = { containers: [a], unknown: ['y'] };
      assert.throws(() => applyStrategicMergePatch(object, patch as JsonObject, SCHEMA), { code, message });
    });
  }

  it('rejects patches that are nested too deeply', () => {
    let deep: JsonObject = {};
    for (let depth = 0; depth < MAX_PATCH_DEPTH + 1; depth++) {
      deep = { a: deep };
    }
    assert.throws(() => applyStrategicMergePatch({}, deep, SCHEMA), { code: 'malformed' });
  });
});

test('any patch leaves its inputs unchanged, and throws only PatchErrors', () => {
  const key = fc.constantFrom(
    'name',
    'labels',
    'args',
    'finalizers',
    'containers',
    'strategy',
    '$patch',
    '$retainKeys',
    '$setElementOrder/containers',
    '$setElementOrder/finalizers',
    '$deleteFromPrimitiveList/finalizers',
    '__proto__',
  );
  const { json } = fc.letrec<{ json: JsonValue }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      fc.constantFrom<JsonValue>(null, 'a', 'b', 'name', 'delete', 'replace', 1, true),
      fc.array(tie('json'), { maxLength: 3 }),
      fc.dictionary(key, tie('json'), { maxKeys: 4 }),
    ),
  }));
  const object = fc.dictionary(key, json, { maxKeys: 5 });
  fc.assert(
    fc.property(object, object, (live, patch) => {
      const before = JSON.stringify([live, patch]);
      try {
        applyStrategicMergePatch(live, patch, SCHEMA);
      } catch (error) {
        assert.ok(error instanceof PatchError, String(error));
      }
      assert.equal(JSON.stringify([live, patch]), before);
    }),
    { numRuns: 1_000 },
  );
});
