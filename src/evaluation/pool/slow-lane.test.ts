import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyMatch } from '../../resources/index.ts';
import { monotonicNow } from '../evaluation-protocol.ts';
import type { WorkerThread } from './worker-thread.ts';
import { tableChange } from '../testing/worker-tables.ts';
import { EndingThreads } from './ending-threads.ts';
import { PublishedTable } from './published-table.ts';
import { ReviewJob } from './review-job.ts';
import { SlowLane } from './slow-lane.ts';

const worker = { jobs: [], isAble: true, isBackground: false } as unknown as WorkerThread;
const background = { jobs: [], isAble: true, isBackground: true } as unknown as WorkerThread;

/** Whether an idle worker may take a review of an owner, where all workers are idle. */
const mayTake = (lane: SlowLane, one: WorkerThread, owner: string): boolean =>
  lane.mayTake(one, [worker, background], owner);

describe('the slow lane', () => {
  it('restricts a namespace whose reviews take long one after the other, and no cluster-wide policy that is alone', (context) => {
    context.mock.method(performance, 'now', () => 10_000);
    const failed = { message: 'not loaded', failurePolicy: 'Fail' } as const;
    const match = { namespace: 'tenant' } as PolicyMatch;
    const table = new PublishedTable();
    const [ofTenant = 0, ofCluster = 0] = table.apply(
      tableChange([
        { id: 'kw.ap.tenant.a', failed, match },
        { id: 'kw.cap.a', failed },
      ]),
    );
    const lane = new SlowLane(table, () => {}, 2);
    const target = 'validating.fail.equivalent.namespaced.v1';
    const job = new ReviewJob({
      seq: 1,
      route: 'admit',
      target,
      input: new Uint8Array(),
      requestTimeoutMs: 10_000,
      done: () => {},
    });
    for (let review = 0; review < 3; review += 1) {
      assert.equal(lane.slowOf(job), null);
      lane.account({ policy: ofTenant, ms: 45, waitedMs: 30 });
      lane.account({ policy: ofCluster, ms: 45, waitedMs: 30 });
    }
    assert.deepEqual(lane.slowOf(job), ['namespace/tenant']);
    assert.equal(mayTake(lane, worker, 'namespace/tenant'), false, 'it is for workers that give way to others');
    assert.equal(lane.mayTake(worker, [worker], 'namespace/tenant'), true, 'a single worker is for all');
    assert.equal(mayTake(lane, background, 'namespace/tenant'), true);
    lane.account({ policy: ofTenant, ms: 1_000, waitedMs: 1_000 });
    assert.equal(mayTake(lane, background, 'namespace/tenant'), true, 'others can run while it waits');
    lane.account({ policy: ofTenant, ms: 480, waitedMs: 0 });
    assert.equal(mayTake(lane, background, 'namespace/tenant'), false, 'it waits until some of its time has worn off');
    assert.equal(mayTake(lane, background, 'namespace/other'), true);
  });

  it('restricts a cluster-wide policy whose reviews take long one after the other, while reviews of others come', (context) => {
    let now = 10_000;
    context.mock.method(performance, 'now', () => now);
    const failed = { message: 'not loaded', failurePolicy: 'Fail' } as const;
    const table = new PublishedTable();
    const [slow = 0] = table.apply(
      tableChange([
        { id: 'kw.cap.slow', failed },
        { id: 'kw.cap.quick', failed },
      ]),
    );
    const lane = new SlowLane(table, () => {}, 2);
    const review = (target: string): ReviewJob => {
      const request = { seq: 1, route: 'validate', target, owner: target, input: new Uint8Array() } as const;
      return new ReviewJob({ ...request, requestTimeoutMs: 10_000, done: () => {} });
    };
    const answeredSlowly = (): void => lane.answered(review('kw.cap.slow'), { policy: slow, ms: 100, waitedMs: 0 });
    const isRestricted = (): boolean => lane.slowOf(review('kw.cap.slow')) !== null;
    answeredSlowly();
    answeredSlowly();
    assert.equal(isRestricted(), false, 'nobody else needs the workers');
    lane.answered(review('kw.cap.quick'), undefined);
    answeredSlowly();
    assert.equal(isRestricted(), true);
    const job = review('kw.cap.slow');
    const busy = { jobs: [job], runningJob: job, isAble: true } as unknown as WorkerThread;
    assert.equal(lane.mayTake(worker, [busy, worker], 'kw.cap.slow'), false, 'one worker of two is for others');
    now += 1_001;
    answeredSlowly();
    assert.equal(isRestricted(), false, 'others have stopped');
  });

  it('lets an owner that is not slow hold its share, where its policies are untried', () => {
    const lane = new SlowLane(new PublishedTable(), () => {}, 2);
    const owner = 'namespace/tenant';
    const deferred = (): ReviewJob => {
      const request = {
        route: 'admit',
        target: 'validating.fail.equivalent.namespaced.v1',
        input: new Uint8Array(),
      } as const;
      const job = new ReviewJob({ ...request, seq: 1, requestTimeoutMs: 0, done: () => {} });
      assert.equal(lane.isFor(job), false);
      job.owner = owner;
      return job;
    };
    const job = deferred();
    assert.equal(lane.isFor(job), true);
    const busy = { jobs: [job], runningJob: job, isAble: true } as unknown as WorkerThread;
    assert.equal(lane.mayTake(worker, [worker, background], owner), true);
    assert.equal(lane.mayTake(worker, [busy, worker], owner), false);
    assert.equal(lane.mayTake(worker, [busy, worker], 'namespace/other'), true, 'others take the last worker');
    const parked = deferred();
    lane.park(parked);
    assert.equal(lane.unpark(worker, [busy, worker]), undefined);
    assert.deepEqual(lane.giveUp(), [parked]);
    assert.equal(lane.isFor(parked), false, 'it is answered without the policies of the owner');
  });

  it('counts the time of all policies together where they are of one namespace, whatever policies are called', () => {
    const lane = new SlowLane(new PublishedTable(), () => {}, 2);
    const isCountedTogether = (bucket: string): boolean => {
      const input = new Uint8Array();
      const job = new ReviewJob({
        seq: 1,
        route: 'admit',
        target: bucket,
        input,
        requestTimeoutMs: 10_000,
        done: () => {},
      });
      const measured = [1, 2].map((policy) => {
        const running = { seq: 1, policy, member: -1, since: monotonicNow() };
        return lane.heldBy({ runningJob: job, running } as WorkerThread);
      });
      assert.ok(measured.every((one) => one !== undefined));
      return measured[0] === measured[1];
    };
    for (const bucket of ['validating.fail.equivalent.namespaced.v1', 'mutating.ignore.exact.namespaced']) {
      assert.equal(isCountedTogether(bucket), true, bucket);
    }
    for (const bucket of ['validating.fail.equivalent.cluster.v1', 'validating.kw.cap.namespaced']) {
      assert.equal(isCountedTogether(bucket), false, bucket);
    }
  });

  it('counts threads that were ended and still run as held by their owner, until they exit', (context) => {
    let now = 10_000;
    context.mock.method(performance, 'now', () => now);
    const ending = new EndingThreads();
    const lane = new SlowLane(new PublishedTable(), () => {}, 2, ending);
    const owner = 'namespace/tenant';
    assert.equal(mayTake(lane, background, owner), true);
    ending.add(worker, owner);
    assert.equal(mayTake(lane, background, owner), false, 'it holds its share of the threads');
    assert.equal(mayTake(lane, background, 'namespace/other'), true);
    const request = { seq: 1, route: 'validate', target: 'kw.ap.tenant.a', owner, input: new Uint8Array() } as const;
    const job = new ReviewJob({ ...request, requestTimeoutMs: 10_000, done: () => {} });
    lane.park(job);
    assert.deepEqual(lane.giveUp(), [], 'threads take some milliseconds to end');
    now += 1_500;
    assert.deepEqual(lane.giveUp(), [job], 'it waits for nothing');
    assert.deepEqual(job.timedOut, ['kw.ap.tenant.a']);
    now += 60_000;
    lane.keepStuck();
    assert.equal(lane.owners, 1, 'it stays slow');
    ending.add(background, 'namespace/other');
    assert.equal(mayTake(lane, background, 'namespace/third'), true, 'an owner that is not slow');
    lane.add('kw.cap.slow');
    assert.equal(
      mayTake(lane, background, 'kw.cap.slow'),
      false,
      'together they hold as many threads as there are workers',
    );
    ending.delete(worker);
    ending.delete(background);
    assert.equal(mayTake(lane, background, owner), true);
  });
});
