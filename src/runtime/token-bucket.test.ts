import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TokenBucket } from './token-bucket.ts';

describe('TokenBucket', () => {
  it('allows a burst, then its rate', () => {
    const bucket = new TokenBucket({ perSecond: 2, burst: 3 });
    assert.deepEqual(
      [0, 0, 0, 0, 0].map((now) => bucket.reserve(now)),
      [0, 0, 0, 500, 1000],
    );
    assert.equal(bucket.reserve(1000), 500);
    assert.equal(bucket.reserve(10_000), 0);
  });

  it('loses no tokens when the clock goes back', () => {
    const bucket = new TokenBucket({ perSecond: 1, burst: 2 });
    assert.deepEqual(
      [100_000, 0, 500, 1000].map((now) => bucket.take(now)),
      [true, true, false, true],
    );
  });

  it('take returns false when the bucket is empty', () => {
    const bucket = new TokenBucket({ perSecond: 1, burst: 1 });
    assert.deepEqual(
      [0, 1, 999, 1000, 1001].map((now) => bucket.take(now)),
      [true, false, false, true, false],
    );
  });
});
