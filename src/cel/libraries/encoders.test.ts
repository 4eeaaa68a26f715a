import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { EvaluationFailure } from '../model/value.ts';
import { ENCODER_EXTENSIONS } from './encoders.ts';

const [encode, decode] = ENCODER_EXTENSIONS.functions.flatMap(({ overloads }) => overloads);

test('bytes survive base64, padded or not', () => {
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      const text = encode?.call(bytes);
      assert.ok(typeof text === 'string');
      assert.deepEqual(decode?.call(text), new Uint8Array(bytes));
      assert.deepEqual(decode?.call(text.replaceAll('=', '')), new Uint8Array(bytes));
    }),
  );
});

test('invalid base64 is rejected', () => {
  for (const text of ['a', 'aG=', 'a b', '-_', '=']) {
    assert.ok(decode?.call(text) instanceof EvaluationFailure, text);
  }
});
