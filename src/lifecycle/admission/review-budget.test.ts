import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RequestRefusal } from '../../https/index.ts';
import { ReviewBudget } from './review-budget.ts';

const REFUSED = { name: 'HttpsError', status: 429 };
const pod = (number: number): { address: string; isApiServer: boolean } => ({
  address: `10.0.0.${number}`,
  isApiServer: false,
});
const API_SERVER = { address: '192.0.2.1', isApiServer: true };

describe('the budget of reviews', () => {
  it('is one for each address, and is refilled', () => {
    let now = 0;
    const budget = new ReviewBudget(() => now);
    budget.takeOfAddress(pod(1), 256);
    assert.throws(() => budget.takeOfAddress(pod(1), 1), RequestRefusal);
    budget.takeOfAddress(pod(2), 256);
    now = 1_000;
    budget.takeOfAddress(pod(1), 32);
    assert.throws(() => budget.takeOfAddress(pod(1), 1), REFUSED);
  });

  it('is limited for all addresses together, in which API servers have no part', () => {
    const budget = new ReviewBudget(() => 0);
    for (const number of [1, 2, 3, 4]) {
      budget.takeOfAddress(pod(number), 256);
    }
    assert.throws(() => budget.takeOfAddress(pod(5), 1), REFUSED);
    for (let count = 0; count < 1_000; count += 1) {
      budget.takeOfAddress(API_SERVER, 256);
    }
  });

  it('is one for each user of API servers, so that no user keeps others from writing', () => {
    const budget = new ReviewBudget(() => 0);
    assert.ok(budget.takeOfUser(API_SERVER, 'mallory', 2_000));
    assert.ok(!budget.takeOfUser(API_SERVER, 'mallory', 1));
    assert.ok(budget.takeOfUser(API_SERVER, 'alice', 2_000));
  });

  it('cannot be used up in the name of a user by a client that is no API server', () => {
    const budget = new ReviewBudget(() => 0);
    for (let count = 0; count < 100; count += 1) {
      assert.ok(budget.takeOfUser(pod(1), 'alice', 256));
    }
    assert.ok(budget.takeOfUser(API_SERVER, 'alice', 2_000));
  });

  it('has few reviews under way of each address, and of all', () => {
    const budget = new ReviewBudget(() => 0);
    const ends = Array.from({ length: 4 }, () => budget.begin(pod(1)));
    assert.throws(() => budget.begin(pod(1)), REFUSED);
    ends[0]?.();
    budget.begin(pod(1));
    for (let number = 2; number < 9; number += 1) {
      for (let count = 0; count < 4; count += 1) {
        budget.begin(pod(number));
      }
    }
    assert.throws(() => budget.begin(pod(9)), REFUSED);
    for (let count = 0; count < 100; count += 1) {
      budget.begin(API_SERVER);
    }
  });
});
