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

describe('withdrawn reviews', () => {
  it('do not exist at first', () => {
    const activity = new WorkerActivity();
    assert.ok([1, 2, LAST_TURN, -LAST_TURN].every((turn) => !activity.isWithdrawn(turn)));
  });

  it('are those in a range of turns, not later ones', () => {
    const activity = new WorkerActivity();
    activity.withdraw(4, 6);
    const withdrawn = [3, 4, 5, 6, 7].filter((turn) => activity.isWithdrawn(turn));
    assert.deepEqual(withdrawn, [4, 5, 6]);
    activity.withdraw(9, 9);
    assert.deepEqual(
      [6, 7, 8, 9, 10].filter((turn) => activity.isWithdrawn(turn)),
      [9],
    );
  });

  it('are the same when turns wrap around', () => {
    const activity = new WorkerActivity();
    const around = [-1, 0, 1, 2, 3].map((step) => (LAST_TURN + step) | 0);
    activity.withdraw(around[1] ?? 0, around[3] ?? 0);
    assert.deepEqual(
      around.map((turn) => activity.isWithdrawn(turn)),
      [false, true, true, true, false],
    );
  });
});
