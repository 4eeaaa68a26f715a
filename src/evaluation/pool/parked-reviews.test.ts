import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ParkedReviews } from './parked-reviews.ts';
import { ReviewJob } from './review-job.ts';

const job = (seq: number): ReviewJob =>
  new ReviewJob({
    seq,
    route: 'validate',
    target: 'p',
    input: new Uint8Array(),
    requestTimeoutMs: 10_000,
    done: () => {},
  });

describe('parked reviews', () => {
  const parked = (): ParkedReviews => {
    const reviews = new ParkedReviews();
    for (const [owner, seq] of [
      ['a', 1],
      ['a', 2],
      ['a', 3],
      ['b', 4],
      ['c', 5],
    ] as const) {
      reviews.push(owner, job(seq));
    }
    return reviews;
  };
  const all = (reviews: ParkedReviews, hasRoom: (owner: string) => boolean = () => true): number[] => {
    const taken: number[] = [];
    for (let next = reviews.take(hasRoom); next !== undefined; next = reviews.take(hasRoom)) {
      taken.push(next.seq);
    }
    return taken;
  };

  it('are taken from one owner after the other, each in its order', () => {
    const reviews = parked();
    assert.deepEqual(all(reviews), [1, 4, 5, 2, 3]);
    assert.equal(reviews.length, 0);
  });

  it('wait while their owner has no room, without others waiting for them', () => {
    const reviews = parked();
    assert.deepEqual(
      all(reviews, (owner) => owner !== 'a'),
      [4, 5],
    );
    assert.equal(reviews.length, 3);
    assert.deepEqual(all(reviews), [1, 2, 3]);
  });

  it('are removed by a test, and the others keep their order', () => {
    const reviews = parked();
    assert.deepEqual(
      reviews.remove(({ seq }) => seq === 1 || seq === 4).map(({ seq }) => seq),
      [1, 4],
    );
    assert.equal(reviews.length, 3);
    assert.deepEqual(all(reviews), [2, 5, 3]);
  });
});
