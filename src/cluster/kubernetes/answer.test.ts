import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ApiError } from '../api-error.ts';
import { errorOfAnswer, errorOfStatus, jsonOf, warningsOf } from './answer.ts';
import type { ApiAnswer } from './answer.ts';

const answer = (status: number, contentType: string, body: string, headers = {}): ApiAnswer => ({
  status,
  contentType,
  headers,
  body: Buffer.from(body),
});

describe('errorOfAnswer', () => {
  it('contains the fields of a Status', () => {
    const status = {
      kind: 'Status',
      code: 409,
      reason: 'AlreadyExists',
      message: 'pods "a" already exists',
      details: { name: 'a', kind: 'pods' },
    };
    const error = errorOfAnswer(answer(409, 'application/json', JSON.stringify(status)), 'POST /pods');
    assert.ok(error instanceof ApiError);
    assert.deepEqual(
      [error.code, error.reason, error.message, error.details],
      [409, 'AlreadyExists', 'pods "a" already exists', { name: 'a', kind: 'pods' }],
    );
  });

  it('uses kubectl’s messages for plain text', () => {
    const error = errorOfAnswer(answer(404, 'text/plain; charset=utf-8', '404 page not found\n'), 'GET /x');
    assert.ok(error instanceof ApiError);
    assert.deepEqual(
      [error.code, error.reason, error.message],
      [404, 'NotFound', 'the server could not find the requested resource'],
    );
  });

  it('rejects the page of a proxy', () => {
    const error = errorOfAnswer(answer(502, 'text/html', '<h1>Bad Gateway</h1>'), 'GET /x');
    assert.equal(error.code, 'answer-malformed');
    assert.match(error.message, /got status 502 with text\/html .*Bad Gateway/);
  });

  it('moves Retry-After to the details', () => {
    const error = errorOfAnswer(answer(429, 'text/plain', 'later', { 'retry-after': '7' }), 'GET /x');
    assert.ok(error instanceof ApiError);
    assert.equal(error.details?.retryAfterSeconds, 7);
  });
});

describe('errorOfStatus', () => {
  it('accepts any object as a Status', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom('code', 'reason', 'message', 'details'), fc.jsonValue()), (status) => {
        const error = errorOfStatus(status, 500);
        assert.ok(error.code >= 400 && error.message !== '' && typeof error.reason === 'string');
      }),
    );
  });
});

describe('jsonOf', () => {
  it('describes a body that is not JSON', () => {
    assert.throws(
      () => jsonOf(answer(200, 'text/html', '<p>Log in</p>'), 'GET /x'),
      /expected JSON, got text\/html .*Log in/,
    );
    assert.throws(() => jsonOf(answer(200, 'application/json', '{"a":'), 'GET /x'), /got 5 bytes that are none/);
  });
});

describe('warningsOf', () => {
  it('reads one warning, several in a header, and several headers', () => {
    assert.deepEqual(warningsOf('299 - "unknown field \\"spec.x\\""'), ['unknown field "spec.x"']);
    assert.deepEqual(warningsOf('299 - "a, b", 299 - "c"'), ['a, b', 'c']);
    assert.deepEqual(warningsOf(['299 - "a"', '299 - "b"']), ['a', 'b']);
    assert.deepEqual(warningsOf(undefined), []);
  });

  it('accepts any header', () => {
    fc.assert(fc.property(fc.string(), (header) => Array.isArray(warningsOf(header))));
  });
});
