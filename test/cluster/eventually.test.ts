import assert from 'node:assert/strict';
import os from 'node:os';
import { describe, it, type TestContext } from 'node:test';
import { eventually } from './eventually.ts';

/** Each look at the clock takes 10 ms, on a machine where that many processes want each processor. */
function onMachine(context: TestContext, processes: number): () => Promise<number> {
  let [now, attempts] = [0, 0];
  context.mock.method(performance, 'now', () => (now += 10));
  context.mock.method(os, 'loadavg', () => [processes * os.availableParallelism(), 0, 0]);
  return async () => {
    attempts += 1;
    assert.ok(attempts >= 10, `attempt ${attempts}`);
    return attempts;
  };
}

describe('eventually', () => {
  it('fails with the last error once its time is over', async (context) => {
    const attempt = onMachine(context, 0.5);
    await assert.rejects(eventually(attempt, { timeoutMs: 35, intervalMs: 0 }), /attempt 4/);
  });

  it('waits longer where many processes want the processors', async (context) => {
    const attempt = onMachine(context, 5);
    assert.equal(await eventually(attempt, { timeoutMs: 35, intervalMs: 0 }), 10);
  });

  it('ends with a signal', async () => {
    const signal = AbortSignal.abort(new Error('the test is over'));
    await assert.rejects(
      eventually(() => Promise.reject(new Error('not yet')), { signal }),
      /the test is over/,
    );
  });
});
