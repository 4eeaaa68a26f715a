import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Backoff, BACKOFF_CAP_MS, BACKOFF_FLOOR_MS } from './backoff.ts';

describe('Backoff', () => {
  it('waits longer the longer it fails, up to a limit', () => {
    const backoff = new Backoff(() => 0.999_999);
    let now = 0;
    const waits = Array.from({ length: 100 }, () => {
      const wait = backoff.failed(now);
      now += wait;
      return wait;
    });
    assert.equal(Math.round(waits[0] ?? 0), BACKOFF_FLOOR_MS);
    assert.ok(waits.every((wait, index) => index === 0 || wait >= (waits[index - 1] ?? 0) - 1));
    assert.equal(Math.round(waits.at(-1) ?? 0), BACKOFF_CAP_MS);
  });

  it('is late by at most a small share of the outage', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.integer({ min: 0, max: 13_000 }),
        (dice, outage) => {
          const backoff = new Backoff(() => dice);
          backoff.failed(0);
          const wait = backoff.failed(outage);
          assert.ok(wait >= BACKOFF_FLOOR_MS / 2 && wait <= 2_000, `${wait}`);
        },
      ),
    );
  });

  it('starts again after a success', () => {
    const backoff = new Backoff(() => 0.999_999);
    backoff.failed(0);
    assert.ok(backoff.failed(60_000) > 8_000);
    backoff.reset();
    assert.ok(backoff.failed(60_000) <= BACKOFF_FLOOR_MS);
  });

  it('waits at least as long as Retry-After', () => {
    assert.equal(new Backoff(() => 0).failed(0, 7_000), 7_000);
    assert.equal(new Backoff(() => 0.5).failed(0, 8_000), 10_000);
  });
});
