import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../../../cluster/index.ts';
import type { JsonObject, JsonValue, KubernetesObject } from '../../../resources/index.ts';
import { applyPatch, parsePatch } from './webhook-patch.ts';

const KIND = { group: 'example.com', version: 'v1', kind: 'Widget' };
const WIDGET: KubernetesObject = {
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name: 'w' },
  spec: { list: [1, 2], deep: { a: 'b' } },
};

const apply = (operations: readonly JsonValue[]) => applyPatch(WIDGET, operations, KIND, undefined);

describe('patches of webhooks', () => {
  it('give an object of the same kind, or an error of the server, and leave the object alone', () => {
    const before = JSON.stringify(WIDGET);
    const path = fc.constantFrom(
      '',
      '/kind',
      '/apiVersion',
      '/metadata',
      '/spec',
      '/spec/list/0',
      '/spec/deep/x',
      '/__proto__/a',
    );
    const operation = fc.record({
      op: fc.constantFrom('add', 'remove', 'replace', 'copy', 'move', 'test'),
      path,
      from: path,
      value: fc.jsonValue(),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 4 }), (operations) => {
        try {
          const { apiVersion, kind, metadata } = apply(operations as readonly JsonValue[]);
          assert.deepEqual([apiVersion, kind, typeof metadata], ['example.com/v1', 'Widget', 'object']);
        } catch (error) {
          assert.ok(error instanceof ApiError, String(error));
          assert.equal(error.code, 500);
        }
        assert.equal(JSON.stringify(WIDGET), before);
        assert.equal(Object.hasOwn(Object.prototype, 'a'), false);
      }),
    );
  });

  it('may not nest without end', () => {
    const value = JSON.parse(`${'['.repeat(20_000)}${']'.repeat(20_000)}`) as JsonValue;
    assert.throws(() => apply([{ op: 'add', path: '/spec/x', value }]), { name: 'ApiError', code: 500 });
  });

  it('are lists of operations', () => {
    fc.assert(
      fc.property(fc.oneof(fc.json(), fc.string()), (text) => {
        let operations: readonly JsonValue[] = [];
        try {
          operations = parsePatch(Buffer.from(text));
        } catch (error) {
          return error instanceof Error && error.name === 'Error';
        }
        return operations.every((one): one is JsonObject => typeof one === 'object' && one !== null);
      }),
    );
  });
});
