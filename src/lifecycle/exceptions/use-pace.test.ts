import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { UsePace, WRITE_INTERVAL_MS, WRITES_AT_ONCE } from './use-pace.ts';

describe('UsePace', () => {
  it('has the first use of an exception written at once, and further ones after its interval', () => {
    const pace = new UsePace(60_000);
    assert.equal(pace.delayMs('a', 1_000_000), 0);
    pace.written('a', 1_000_010);
    assert.equal(pace.delayMs('a', 1_000_020), 59_990);
    assert.equal(pace.delayMs('b', 1_000_020), 0, 'another one does not wait for it');
    assert.equal(pace.delayMs('a', 1_060_010), 0);
  });

  it('spreads the writes about many exceptions, and keeps the turn of each', () => {
    const pace = new UsePace(60_000);
    const now = 1_000_000;
    const delays = Array.from({ length: WRITES_AT_ONCE + 10 }, (_, index) => pace.delayMs(`uid-${index}`, now));
    assert.deepEqual(new Set(delays.slice(0, WRITES_AT_ONCE)), new Set([0]));
    assert.equal(delays.at(-1), 10 * WRITE_INTERVAL_MS);
    assert.equal(pace.delayMs(`uid-${WRITES_AT_ONCE + 9}`, now + 100), 10 * WRITE_INTERVAL_MS - 100);
    // After a pause, as many at once again.
    const later = now + 2 * WRITES_AT_ONCE * WRITE_INTERVAL_MS;
    assert.equal(pace.delayMs('late', later), 0);
  });

  it('does not have the last uses of a replica wait for the interval', () => {
    const pace = new UsePace(60_000);
    pace.written('a', 1_000_000);
    assert.equal(pace.delayMs('a', 1_000_010), 59_990);
    assert.equal(pace.delayMs('a', 1_000_020, true), 0);
    assert.equal(pace.delayMs('a', 1_000_030), 0, 'it keeps its turn');
  });

  it('forgets deleted exceptions', () => {
    const pace = new UsePace(60_000);
    pace.written('a', 1_000_000);
    pace.forget('a');
    assert.equal(pace.delayMs('a', 1_000_001), 0);
  });
});
