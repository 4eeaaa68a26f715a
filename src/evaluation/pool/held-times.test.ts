import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { HeldTimes } from './held-times.ts';
import type { WorkerThread } from './worker-thread.ts';

/** A worker that is busy for long, with this processor time. */
function busyWorker(): { usedMs: number; isWaiting: boolean } {
  return {
    usedMs: 500,
    isWaiting: false,
    jobs: [{}],
    busySince: -1_000,
    cpuMs(this: { usedMs: number }) {
      return Promise.resolve(this.usedMs);
    },
  } as unknown as { usedMs: number; isWaiting: boolean };
}

it('a worker is held for its processor time and its waiting, not for the time in which other threads run', async (context) => {
  let now = 0;
  context.mock.method(performance, 'now', () => now);
  const held = new HeldTimes();
  const one = busyWorker();
  const worker = one as unknown as WorkerThread;
  let key = 'review 1';
  const pass = async (ms: number): Promise<number> => {
    now += ms;
    held.update([worker], () => key, 20);
    await setImmediate();
    return held.of(worker);
  };
  assert.equal(await pass(25), 0, 'what it used before is not counted');
  assert.equal(await pass(1_000), 0, 'it did not run');
  one.usedMs += 30;
  assert.equal(await pass(1_000), 30);
  one.isWaiting = true;
  assert.equal(await pass(200), 230);
  key = 'review 2';
  assert.equal(await pass(25), 0);
});
