import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { JobThread, ThreadError } from './job-thread.ts';
import { createLog } from '../log/index.ts';

interface Job {
  readonly kind: 'answer' | 'ask' | 'count' | 'exit' | 'fill' | 'loop' | 'thread';
  readonly value?: unknown;
}

type TestThread = JobThread<Job, unknown, unknown, unknown>;

/** For what another thread does meanwhile. Milliseconds. */
const PATIENCE_MS = 60_000;
const DEADLINE_MS = 300;

function testThread(): TestThread {
  return new JobThread({
    module: new URL('./testing/job-thread-module.ts', import.meta.url),
    name: 'test',
    workerData: undefined,
    deadlineMs: DEADLINE_MS,
    heapMb: 32,
    log: createLog({ level: 'silent' }),
  });
}

describe('a thread for jobs', () => {
  let thread: TestThread;
  beforeEach(() => {
    thread = testThread();
  });
  afterEach(() => thread.stop());

  const answer = (value: unknown): Job => ({ kind: 'answer', value });
  const failsWith = (code: ThreadError['code']) => (error: unknown) =>
    error instanceof ThreadError && error.code === code;

  it('answers jobs', async () => {
    assert.deepEqual(await Promise.all([thread.run(answer(1), 'a'), thread.run(answer(2), 'a')]), [1, 2]);
  });

  it('asks while it has the next job, and gives the reply to the job that asked', async () => {
    const ask: Job = { kind: 'ask', value: 'name' };
    const jobs = ['a', 'b', 'c'].map((one) => thread.run(ask, 'a', (question) => `${String(question)} of ${one}`));
    assert.deepEqual(await Promise.all(jobs), ['name of a', 'name of b', 'name of c']);
  });

  it('goes on to the next job while nobody reads the answer', async () => {
    await thread.run(answer(0), 'a');
    const count = new Int32Array(new SharedArrayBuffer(4));
    const jobs = [thread.run({ kind: 'count', value: count }, 'a'), thread.run({ kind: 'count', value: count }, 'a')];
    while (Atomics.load(count, 0) < jobs.length) {
      const seen = Atomics.load(count, 0);
      assert.notEqual(Atomics.wait(count, 0, seen, PATIENCE_MS), 'timed-out');
    }
    await Promise.all(jobs);
  });

  it('blames no job for the time of the next one', async () => {
    await thread.run(answer(0), 'a');
    // Timers are looked at right after this turn, before messages.
    await turn();
    const jobs = [thread.run(answer(1), 'a'), thread.run({ kind: 'loop' }, 'a'), thread.run(answer(2), 'a')];
    // Nobody reads the first answer until the deadline is over.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * DEADLINE_MS);
    await assert.rejects(jobs[1] ?? thread.run(answer(3), 'a'), failsWith('deadline'));
    assert.deepEqual(await Promise.all([jobs[0], jobs[2]]), [1, 2]);
  });

  it('starts before there is a job, while it is kept, and ends then', async () => {
    thread.keep(true);
    const later = testThread();
    const laterId = Number(await later.run({ kind: 'thread' }, 'a'));
    later.stop();
    const id = Number(await thread.run({ kind: 'thread' }, 'a'));
    assert.ok(id < laterId, 'ids grow');
    thread.keep(false);
    assert.ok(Number(await thread.run({ kind: 'thread' }, 'a')) > laterId);
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
    const jobs = [run('a', 1), run('a', 2), run('a', 3), run('a', 4), run('b', 1), run('c', 1), run('b', 2)];
    await Promise.all(jobs);
    assert.deepEqual(order, ['a1', 'a2', 'a3', 'b1', 'c1', 'a4', 'b2'], 'the thread has the first two at once');
  });

  it('fails all jobs when it is stopped', async () => {
    const jobs = [thread.run({ kind: 'loop' }, 'a'), thread.run(answer(1), 'a'), thread.run(answer(2), 'b')];
    thread.stop();
    for (const job of [...jobs, thread.run(answer(3), 'a')]) {
      await assert.rejects(job, failsWith('stopped'));
    }
  });
});
