import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { DirectBucket, DirectBuckets } from './direct-buckets.ts';

describe('DirectBuckets', () => {
  it('are those of policies, closed while one of them closes them', () => {
    const buckets = new DirectBuckets();
    assert.equal(buckets.get('a'), undefined);
    buckets.set('one', { open: ['a'], closed: [] });
    buckets.set('two', { open: [], closed: ['a', 'b'] });
    assert.deepEqual([buckets.get('a')?.isOpen, buckets.get('b')?.isOpen], [false, false]);
    buckets.set('two', { open: ['a'], closed: [] });
    assert.deepEqual([buckets.get('a')?.isOpen, buckets.get('b')], [true, undefined]);
    buckets.delete('one');
    buckets.delete('two');
    buckets.delete('three');
    assert.equal(buckets.get('a'), undefined);
  });

  it('know what reviews usually take', () => {
    const bucket = new DirectBucket();
    assert.equal(bucket.usualMs, undefined);
    bucket.took(10);
    bucket.took(0);
    assert.equal(bucket.usualMs, 8);
    bucket.count(1, false);
    assert.equal(bucket.usualMs, undefined);
  });

  it('leave more and more reviews to workers unseen while all are theirs, and look again at the next when one is not', () => {
    const bucket = new DirectBucket();
    const left = (): number => {
      let count = 0;
      while (bucket.isUnseen()) {
        count += 1;
      }
      return count;
    };
    assert.equal(left(), 0);
    const counts = Array.from({ length: 8 }, () => {
      bucket.missed();
      return left();
    });
    assert.deepEqual(counts, [1, 2, 4, 8, 16, 32, 64, 64]);
    bucket.found();
    assert.equal(left(), 0);
    bucket.missed();
    assert.equal(left(), 1);
  });
});
