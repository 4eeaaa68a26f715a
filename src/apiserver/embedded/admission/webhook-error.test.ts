import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deniedError } from './webhook-error.ts';

describe('what a webhook refuses', () => {
  it('has a code that HTTP has room for, whatever the webhook says', () => {
    const codes = [403, 599, 600, 99_999, 200, 400.5, '403', null].map((code) => deniedError('w', { code }).code);
    assert.deepEqual(codes, [403, 599, 400, 400, 400, 400, 400, 400]);
  });
});
