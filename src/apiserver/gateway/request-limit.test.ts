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

  it('lets requests wait, users in turn, and refuses those that are too many', async () => {
    const limit = new RequestLimit('requests', { all: 3, ofUser: 2, waiting: { all: 4, ofUser: 3 } });
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const run = (username: string, name: string): Promise<void> =>
      limit.run({ username, groups: [] }, () => {
        begun.push(name);
        const { promise, resolve } = Promise.withResolvers<void>();
        ends.push(resolve);
        return promise;
      });
    const end = async (): Promise<void> => {
      ends.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    };
    const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'a5'].map((name) => run(name.slice(0, 1), name));
    assert.deepEqual(begun, ['a1', 'a2', 'b1']);
    await assert.rejects(run('a', 'a6'), { code: 429 });
    await assert.rejects(run('c', 'c1'), { code: 429 });
    assert.equal(limit.count, 7);
    for (let count = 0; count < 7; count += 1) {
      await end();
    }
    await Promise.all(all);
    assert.deepEqual(begun, ['a1', 'a2', 'b1', 'a3', 'b2', 'a4', 'a5']);
    assert.equal(limit.count, 0);
  });

  it('forgets a request that waits when its client has gone', async () => {
    const limit = new RequestLimit('requests', { all: 1, ofUser: 1, waiting: { all: 1, ofUser: 1 } });
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = limit.run(ALICE, () => promise);
    const gone = new AbortController();
    const never = (): Promise<void> => assert.fail('it has no client');
    const second = limit.run(ALICE, never, gone.signal);
    gone.abort(new Error('gone'));
    await assert.rejects(second, { message: 'gone' });
    assert.equal(limit.count, 1);
    resolve();
    await first;
    assert.equal(limit.count, 0);
  });
});
