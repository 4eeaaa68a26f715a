import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../api-error.ts';
import { decodeContinue, encodeContinue } from './continue-token.ts';

test('a position comes back as it was', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1 }), fc.string({ minLength: 1, unit: 'grapheme' }), (revision, start) => {
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

function plain(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
