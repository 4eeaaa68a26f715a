import assert from 'node:assert/strict';
import { once } from 'node:events';
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { describe, it } from 'node:test';
import { UnreadAnswers } from './unread-answers.ts';

const LARGE = 100_000;
const LIMITS = { all: 5 * LARGE, ofUser: 2 * LARGE };
const BOB = { username: 'bob', groups: [] };
const ADMIN = { username: 'admin', groups: ['system:masters'] };
const userOf = (name: string): typeof BOB => ({ username: name, groups: [] });
const response = (): ServerResponse => new ServerResponse(new IncomingMessage(new Socket()));

describe('unread answers', () => {
  it('are bounded for each user, but for administrators, and in all', () => {
    const unread = new UnreadAnswers(LIMITS);
    unread.hold(BOB, response(), LARGE);
    unread.hold(BOB, response(), LARGE);
    assert.throws(() => unread.hold(BOB, response(), LARGE), /too many bytes of answers of one user/);
    unread.hold(ADMIN, response(), 3 * LARGE);
    for (const user of [ADMIN, userOf('alice')]) {
      assert.throws(() => unread.hold(user, response(), LARGE), /too many bytes of answers that have not been read/);
    }
    unread.hold(BOB, response(), 10_000);
    assert.equal(unread.bytes, 5 * LARGE);
  });

  it('may be one that is larger than the share of a user', () => {
    const unread = new UnreadAnswers(LIMITS);
    unread.hold(BOB, response(), 9 * LARGE);
    assert.equal(unread.bytes, 9 * LARGE);
  });

  it('count with the size that is sent, and no longer when the client has read them or is gone', async () => {
    const unread = new UnreadAnswers(LIMITS);
    const one = response();
    unread.hold(BOB, one, 2 * LARGE);
    unread.hold(BOB, one, 10_000);
    assert.equal(unread.bytes, 10_000);
    one.destroy();
    await once(one, 'close');
    assert.equal(unread.bytes, 0);
    unread.hold(BOB, one, LARGE);
    assert.equal(unread.bytes, 0);
  });
});
