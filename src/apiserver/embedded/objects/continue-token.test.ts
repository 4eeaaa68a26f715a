import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../../../cluster/index.ts';
import { decodeContinue, encodeContinue } from './continue-token.ts';

test('a position comes back as it was', () => {
  const names = fc.stringMatching(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/u);
  const starts = fc.tuple(names, names).map(([namespace, name]) => `${namespace}/${name}\u0000`);
  fc.assert(
    fc.property(fc.integer({ min: 1 }), fc.oneof(starts, names), (revision, start) => {
      assert.deepEqual(decodeContinue(encodeContinue({ revision, start })), { revision, start });
    }),
  );
});

test('anything else is refused, and nothing else happens', () => {
  const texts = fc.oneof(
    fc.string(),
    fc.json().map((text) => Buffer.from(text).toString('base64url')),
    fc
      .record({ v: fc.constant('meta.k8s.io/v1'), rv: fc.anything(), start: fc.anything() }, { requiredKeys: ['v'] })
      .map((value) => Buffer.from(JSON.stringify(value, plain)).toString('base64url')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      try {
        const { revision, start } = decodeContinue(text);
        assert.ok(Number.isSafeInteger(revision) && revision !== 0 && start !== '');
      } catch (error) {
        assert.ok(error instanceof ApiError);
        assert.equal(error.code, 400);
      }
    }),
  );
});

test('a position out of the list is refused', () => {
  for (const start of ['../secrets/', 'a/../../b', '/a//b', './a', 'a/']) {
    assert.throws(() => decodeContinue(encodeContinue({ revision: 1, start })), {
      code: 400,
      message: `invalid continue token: continue key is not valid: ${start}`,
    });
  }
});

function plain(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
