import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RequestLimit } from './request-limit.ts';

const ALICE = { username: 'alice', groups: [] };
const ADMIN = { username: 'admin', groups: ['system:masters'] };

describe('a limit of requests', () => {
  it('holds for a user and for all, and not for the share of administrators', async () => {
    const limit = new RequestLimit('watches', { all: 3, ofUser: 1 });
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = [ALICE, ADMIN, ADMIN].map((user) => limit.run(user, () => promise));
    const done = async (): Promise<void> => undefined;
    await assert.rejects(limit.run(ADMIN, done), { code: 429, message: 'too many watches, please try again later' });
    resolve();
    await Promise.all(waiting);
    assert.equal(limit.count, 0);
  });

  it('counts a request that fails as ended', async () => {
    const limit = new RequestLimit('requests', { all: 2, ofUser: 1 });
    const failure = new Error('failed');
    await assert.rejects(
      limit.run(ALICE, () => Promise.reject(failure)),
      failure,
    );
    await limit.run(ALICE, async () => {
      const second = limit.run(ALICE, async () => undefined);
      await assert.rejects(second, { message: 'too many requests of one user, please try again later' });
    });
    assert.equal(limit.count, 0);
  });
});
