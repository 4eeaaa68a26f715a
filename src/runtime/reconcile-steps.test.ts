import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ReconcileStep } from './reconcile-steps.ts';
import { runSteps, withStatus } from './reconcile-steps.ts';

const { signal } = new AbortController();
const ATTEMPT = { failures: 0, stopped: signal };

describe('the steps of a reconciliation', () => {
  it('run in order up to the last one, and request the earliest requeue', async () => {
    const ran: string[] = [];
    const step =
      (name: string, ends: ReturnType<ReconcileStep<string>>): ReconcileStep<string> =>
      (subject) => {
        ran.push(`${name} ${subject}`);
        return ends;
      };
    const steps = [
      step('a', undefined),
      step('b', { requeueAfterMs: 7 }),
      step('c', Promise.resolve({ isLast: true, requeueAfterMs: 5 })),
      step('d', { requeueAfterMs: 1 }),
    ];
    assert.deepEqual(await runSteps(steps, 'x', signal), { requeueAfterMs: 5 });
    assert.deepEqual(ran, ['a x', 'b x', 'c x']);
  });

  it('are skipped after one that fails', async () => {
    const steps: ReconcileStep<string>[] = [() => Promise.reject(new Error('no')), () => assert.fail('skipped')];
    await assert.rejects(runSteps(steps, 'x', signal), /^Error: no$/);
  });
});

describe('the status of a reconciliation', () => {
  it('is written once with the failure, which is rethrown', async () => {
    const written: (string | undefined)[] = [];
    const write = (failure: { message: string } | undefined) => {
      written.push(failure?.message);
      return Promise.resolve({ requeueAfterMs: 9 });
    };
    assert.deepEqual(await withStatus(ATTEMPT, write, () => Promise.resolve({ requeueAfterMs: 10 })), {
      requeueAfterMs: 9,
    });
    await assert.rejects(
      withStatus(ATTEMPT, write, () => Promise.reject(new Error('the write was refused'))),
      /the write was refused/,
    );
    assert.deepEqual(written, [undefined, 'the write was refused']);
  });

  it('does not hide an earlier failure by its own, which is thrown if it is the only one', async () => {
    const write = () => Promise.reject(new Error('status'));
    await assert.rejects(
      withStatus(ATTEMPT, write, () => Promise.reject(new Error('work'))),
      /work/,
    );
    await assert.rejects(
      withStatus(ATTEMPT, write, () => Promise.resolve({})),
      /status/,
    );
  });

  it('is written after a timeout, but not when the controller stops', async () => {
    const tooLong = AbortSignal.abort(new Error('too long'));
    let count = 0;
    const write = (_failure: unknown, used: AbortSignal) => {
      count += 1;
      assert.equal(used.aborted, false);
      return Promise.resolve({});
    };
    const work = () => {
      tooLong.throwIfAborted();
      return Promise.resolve({});
    };
    await assert.rejects(withStatus(ATTEMPT, write, work), /too long/);
    assert.equal(count, 1);
    const stopped = { failures: 0, stopped: AbortSignal.abort() };
    await assert.rejects(withStatus(stopped, write, work), /too long/);
    assert.equal(count, 1);
  });
});
