import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ApiError } from '../../cluster/index.ts';
import { errorAnswer } from './answer.ts';

describe('the response to a rejected request', () => {
  const headersFor = (retryAfterSeconds: unknown): unknown =>
    errorAnswer(new ApiError(429, 'TooManyRequests', 'later', { retryAfterSeconds } as object)).headers;

  it('has Retry-After, if the value is a number', () => {
    assert.deepEqual(headersFor(3), { 'retry-after': '3' });
    assert.deepEqual(['1\r\nx: y', {}, 1.5, null].map(headersFor), Array(4).fill(undefined));
  });
});
