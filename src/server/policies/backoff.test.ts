import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { LOAD_BACKOFF_BASE_MS, LOAD_BACKOFF_CAP_MS, LOAD_BACKOFF_FLOOR_MS, jitteredBackoff } from './backoff.ts';

describe('jitteredBackoff', () => {
  const almostOne = (): number => 1 - Number.EPSILON;

  it('doubles its bound with every failure, up to the cap', () => {
    const bounds = [1, 2, 3, 4, 12, 1000].map((attempt) => jitteredBackoff(attempt, almostOne));
    assert.deepEqual(
      bounds.map((ms) => ms + 1),
      [LOAD_BACKOFF_BASE_MS, 2000, 4000, 8000, LOAD_BACKOFF_CAP_MS, LOAD_BACKOFF_CAP_MS],
    );
  });

  it('draws from the whole range, but never spins', () => {
    assert.equal(
      jitteredBackoff(5, () => 0.5),
      8000,
    );
    assert.equal(
      jitteredBackoff(5, () => 0),
      LOAD_BACKOFF_FLOOR_MS,
    );
  });
});
