import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { JobThread, ThreadError } from './job-thread.ts';
import { createLog } from '../log/index.ts';

interface Job {
  readonly kind: 'answer' | 'loop' | 'exit' | 'fill';
  readonly value?: unknown;
}

describe('a thread for jobs', () => {
  let thread: JobThread<Job, unknown>;
  beforeEach(() => {
    thread = new JobThread<Job, unknown>({
      module: new URL('./testing/job-thread-module.ts', import.meta.url),
      name: 'test',
      workerData: undefined,
      deadlineMs: 300,
      heapMb: 32,
      log: createLog({ level: 'silent' }),
    });
  });
  afterEach(() => thread.stop());

  const answer = (value: unknown): Job => ({ kind: 'answer', value });
  const failsWith = (code: ThreadError['code']) => (error: unknown) =>
    error instanceof ThreadError && error.code === code;

  it('answers jobs', async () => {
    assert.deepEqual(await Promise.all([thread.run(answer(1), 'a'), thread.run(answer(2), 'a')]), [1, 2]);
  });

  it('ends a job at its deadline, and runs the next one', async () => {
    const endless = thread.run({ kind: 'loop' }, 'a');
    const next = thread.run(answer(1), 'a');
    await assert.rejects(endless, failsWith('deadline'));
    assert.equal(await next, 1);
  });

  it('survives jobs that end the thread or use up its memory', async () => {
    await assert.rejects(thread.run({ kind: 'exit' }, 'a'), failsWith('ended'));
    await assert.rejects(thread.run({ kind: 'fill' }, 'a'), (error) => error instanceof ThreadError);
    assert.equal(await thread.run(answer(1), 'a'), 1);
  });

  it('refuses a job that cannot be cloned, and runs the next one', async () => {
    const failed = assert.rejects(thread.run({ kind: 'answer', value: () => undefined }, 'a'), {
      name: 'DataCloneError',
    });
    assert.equal(await thread.run(answer(1), 'a'), 1);
    await failed;
  });

  it('gives each owner a turn', async () => {
    const order: unknown[] = [];
    const run = async (owner: string, value: number): Promise<void> => {
      order.push(await thread.run(answer(`${owner}${value}`), owner));
    };
    await Promise.all([run('a', 1), run('a', 2), run('a', 3), run('b', 1), run('c', 1), run('b', 2)]);
    assert.deepEqual(order, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2']);
  });

  it('fails all jobs when it is stopped', async () => {
    const jobs = [thread.run({ kind: 'loop' }, 'a'), thread.run(answer(1), 'a'), thread.run(answer(2), 'b')];
    thread.stop();
    for (const job of [...jobs, thread.run(answer(3), 'a')]) {
      await assert.rejects(job, failsWith('stopped'));
    }
  });
});
