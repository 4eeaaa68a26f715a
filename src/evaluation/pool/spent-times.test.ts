import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_SPENDERS, SpentTimes } from './spent-times.ts';

/** Of one worker, what may be spent without end, and at once. */
const [SHARE, LIMIT_MS] = [0.5, 100];

describe('time that owners spend', () => {
  it('is too much when it is spent faster than it wears off, and not when there is time between', (context) => {
    let now = 0;
    context.mock.method(performance, 'now', () => now);
    const spent = new SpentTimes(SHARE, LIMIT_MS);
    const after = (pauseMs: number): number => {
      now += pauseMs;
      spent.add('tenant', 60);
      return spent.excessMs('tenant');
    };
    assert.deepEqual([after(0), after(60), after(60)], [0, 0, 40]);
    assert.equal(spent.excessMs('other'), 0);
    now += 40;
    assert.equal(spent.excessMs('tenant'), 0);
    assert.deepEqual([after(1_000), after(120), after(120), after(120)], [0, 0, 0, 0]);
  });

  it('is forgotten beyond some seconds', (context) => {
    let now = 0;
    context.mock.method(performance, 'now', () => now);
    const spent = new SpentTimes(SHARE, LIMIT_MS);
    spent.add('tenant', 3_600_000);
    assert.ok(spent.excessMs('tenant') <= 10_000);
    now = 10_000;
    assert.equal(spent.excessMs('tenant'), 0);
  });

  it('is known of a bounded number of owners', () => {
    const spent = new SpentTimes(SHARE, LIMIT_MS);
    for (let index = 0; index <= MAX_SPENDERS; index += 1) {
      spent.add(`o${index}`, 1_000);
    }
    assert.equal(spent.size, MAX_SPENDERS);
    assert.deepEqual([spent.excessMs('o0') > 0, spent.excessMs(`o${MAX_SPENDERS}`) > 0], [false, true]);
  });
});
