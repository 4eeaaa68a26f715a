import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { deniedError } from './webhook-error.ts';

describe('a denial of a webhook', () => {
  it('has a valid HTTP status code, for any code of the webhook', () => {
    const codes = [403, 599, 600, 99_999, 200, 400.5, '403', null].map((code) => deniedError('w', { code }).code);
    assert.deepEqual(codes, [403, 599, 400, 400, 400, 400, 400, 400]);
  });
});
