import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { monotonicNow, WorkerActivity } from './evaluation-protocol.ts';

const LAST_TURN = 0x7fff_ffff;

describe('the clock of all threads', () => {
  it('is the one that the system has for all of them', () => {
    const system = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000;
    const before = system();
    const now = monotonicNow();
    // Both are read one after the other when the thread begins.
    assert.ok(before - 1 < now && now < system() + 1);
  });
});

describe('what is taken back from a worker', () => {
  it('is nothing at first', () => {
    const activity = new WorkerActivity();
    assert.ok([1, 2, LAST_TURN, -LAST_TURN].every((turn) => !activity.isTakenBack(turn)));
  });

  it('is what it was given in a range of turns, and what comes later is its own', () => {
    const activity = new WorkerActivity();
    activity.takeBack(4, 6);
    const taken = [3, 4, 5, 6, 7].filter((turn) => activity.isTakenBack(turn));
    assert.deepEqual(taken, [4, 5, 6]);
    activity.takeBack(9, 9);
    assert.deepEqual(
      [6, 7, 8, 9, 10].filter((turn) => activity.isTakenBack(turn)),
      [9],
    );
  });

  it('is the same when turns go round', () => {
    const activity = new WorkerActivity();
    const around = [-1, 0, 1, 2, 3].map((step) => (LAST_TURN + step) | 0);
    activity.takeBack(around[1] ?? 0, around[3] ?? 0);
    assert.deepEqual(
      around.map((turn) => activity.isTakenBack(turn)),
      [false, true, true, true, false],
    );
  });
});
