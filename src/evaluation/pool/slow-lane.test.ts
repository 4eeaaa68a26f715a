import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { monotonicNow } from '../evaluation-protocol.ts';
import type { WorkerThread } from './worker-thread.ts';
import { PublishedTable } from './published-table.ts';
import { ReviewJob } from './review-job.ts';
import { SlowLane } from './slow-lane.ts';

describe('the slow lane', () => {
  it('counts the time of all policies together where they are of one namespace, whatever policies are called', () => {
    const lane = new SlowLane(new PublishedTable(), () => {});
    const isCountedTogether = (bucket: string): boolean => {
      const body = new Uint8Array();
      const job = new ReviewJob({
        seq: 1,
        route: 'admit',
        target: bucket,
        body,
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
});
