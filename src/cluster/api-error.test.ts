import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from './api-error.ts';

const HOSTILE = 'evil\u001B[2J\u001B]8;;a:b\u009B2J\u202Etxt';
const INERT = 'evil\u{fffd}[2J\u{fffd}]8;;a:b\u{fffd}2J\u{fffd}txt';

describe('ApiError', () => {
  it('answers with texts that control no terminal', () => {
    const details = {
      name: HOSTILE,
      causes: [{ field: HOSTILE, message: HOSTILE, reason: 'FieldValueInvalid' }],
    } as const;
    const status = new ApiError(422, 'Invalid', HOSTILE, details).toStatus();
    assert.equal(status.message, INERT);
    assert.deepEqual(status.details, {
      name: INERT,
      causes: [{ field: INERT, message: INERT, reason: 'FieldValueInvalid' }],
    });
  });
});
