import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { MAX_RETRY_AFTER_MS, MAX_THROTTLED_RETRIES, retryAfterMs, throttledWaitMs } from './retry-after.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

describe('retryAfterMs', () => {
  for (const [header, expected] of [
    ['1', 1000],
    [' 120 ', 120_000],
    ['0', 0],
    ['Thu, 01 Jan 2026 00:00:05 GMT', 5000],
    ['Wed, 31 Dec 2025 00:00:00 GMT', 0],
    ['soon', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['2026', 2026_000],
    ['2026-01-01T00:00:05Z', undefined],
    ['', undefined],
    [undefined, undefined],
  ] as const) {
    it(`reads ${JSON.stringify(header)} as ${expected}`, () => {
      assert.equal(retryAfterMs(header, NOW), expected);
    });
  }

  it('never returns a negative or endless delay', () => {
    fc.assert(
      fc.property(fc.string(), (header) => {
        const wait = retryAfterMs(header, NOW);
        assert.ok(wait === undefined || (wait >= 0 && Number.isFinite(wait)));
      }),
    );
  });
});

describe('throttledWaitMs', () => {
  const wait = (status: number, retryAfter: string | undefined, retries = 0): number | undefined =>
    throttledWaitMs({ status, retryAfter }, retries, NOW, () => 1);

  it('waits as long as requested, and up to half as long again', () => {
    assert.equal(wait(429, '2'), 3000);
    assert.equal(wait(503, '2'), 3000);
  });

  it('treats a response as final without Retry-After, or with one that is too long, or after too many', () => {
    assert.equal(wait(429, undefined), undefined);
    assert.equal(wait(500, '1'), undefined);
    assert.equal(wait(429, String(MAX_RETRY_AFTER_MS / 1000 + 1)), undefined);
    assert.equal(wait(429, '1', MAX_THROTTLED_RETRIES), undefined);
  });
});
