import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  MAX_MONITORED_REQUESTS,
  type MonitoredRequest,
  type MonitoredStatus,
  type AdmissionPolicyStatus,
} from '../../resources/index.ts';
import type { ReplicaCount } from '../replicas/monitored-reports.ts';
import { monitoredStatus, settledCounts } from './monitored-status.ts';
import type { AdmissionRolloutView } from './admission-rollout-view.ts';
import { NOW, replica, revision, spec, view } from './testing/rollout-scene.ts';

const SNAPSHOT = spec('1', { mode: 'monitor' });
const SERVING = revision(1, 'Serving', { snapshot: SNAPSHOT });
const BOTH = [replica('a', { 1: 'Serving' }), replica('b', { 1: 'Serving' })];
const [FIRST, SECOND] = ['2026-01-01T00:00:00.001Z', '2026-01-01T00:00:00.002Z'];

/** Requests at these milliseconds of 2026. */
function requests(...times: readonly number[]): readonly MonitoredRequest[] {
  return times.map((ms) => ({ time: new Date(NOW + ms).toISOString(), name: `pod-${ms}` }));
}

function count(name: string, since: string, total: number, last: readonly MonitoredRequest[] = []): ReplicaCount {
  const revisionOf = { name: 'p-1', uid: 'u', policy: 'kw.cap.p', revision: 1 };
  return { replica: name, policyServer: 'default', since, count: total, last, ...revisionOf };
}

function sceneOf(monitored: readonly ReplicaCount[], rest: Partial<AdmissionRolloutView> = {}): AdmissionRolloutView {
  return view([SERVING], BOTH, { monitored, ...rest });
}

function statusAfter(before: MonitoredStatus | undefined, scene: AdmissionRolloutView): MonitoredStatus {
  const status = monitoredStatus(scene, before && { monitored: before });
  assert.ok(status);
  return status;
}

function counted(status: MonitoredStatus): readonly string[] {
  return status.replicas.map(({ name, since, count: total }) => `${name} ${since.at(-2)} ${total}`);
}

describe('what a policy in monitor mode would have rejected', () => {
  it('begins with nothing when a revision serves', () => {
    const begun = { revision: 1, since: '2026-01-01T00:00:00Z', count: 0, last: [], replicas: [] };
    assert.deepEqual(statusAfter(undefined, sceneOf([])), begun);
  });

  it('is the sum over all replicas, with the newest requests of all', () => {
    const reports = [count('b', SECOND, 2, requests(3, 5)), count('a', FIRST, 3, requests(2, 4, 6))];
    const status = statusAfter(undefined, sceneOf(reports));
    assert.equal(status.count, 5);
    assert.deepEqual(status.last, requests(6, 5, 4, 3, 2));
    assert.deepEqual(counted(status), ['a 1 3', 'b 2 2']);
    assert.equal(status.lastReported, new Date(NOW).toISOString());
  });

  it('adds only what is new, also when another leader reads the same reports', () => {
    const reports = [count('a', FIRST, 3, requests(1, 2, 3))];
    const first = statusAfter(undefined, sceneOf(reports));
    assert.equal(statusAfter(first, sceneOf(reports, { now: NOW + 1 })), first);
    const next = statusAfter(first, sceneOf([count('a', FIRST, 4, requests(2, 3, 9))]));
    assert.deepEqual([next.count, next.last], [4, requests(9, 3, 2, 1)]);
  });

  it('lists at most ten requests, the newest of those that were added', () => {
    const ten = requests(...Array.from({ length: MAX_MONITORED_REQUESTS }, (_, index) => index + 1));
    const first = statusAfter(undefined, sceneOf([count('a', FIRST, 1_000, ten)]));
    assert.deepEqual([first.count, first.last], [1_000, ten.toReversed()]);
    const next = statusAfter(first, sceneOf([count('b', FIRST, 1, requests(20))]));
    assert.deepEqual(next.last, [...requests(20), ...ten.toReversed().slice(0, -1)]);
  });

  it('keeps the count of a process that ended, adds that of the next one, and forgets replicas that are gone', () => {
    const first = statusAfter(undefined, sceneOf([count('a', FIRST, 3), count('b', FIRST, 1)]));
    // The last report of the process that ended, and the first one of the next.
    const both = [count('a', FIRST, 5), count('a', SECOND, 1)];
    const second = statusAfter(first, sceneOf(both, { replicas: BOTH.slice(0, 1) }));
    assert.deepEqual([second.count, counted(second)], [7, ['a 1 5', 'a 2 1']]);
    assert.deepEqual(settledCounts(second, both), both);
    assert.equal(statusAfter(second, sceneOf(both)), second);
    const third = statusAfter(second, sceneOf([count('a', SECOND, 2)]));
    assert.deepEqual([third.count, counted(third)], [8, ['a 2 2']]);
  });

  it('counts the last report of a replica that is gone', () => {
    const gone = [count('gone', FIRST, 4)];
    const first = statusAfter(undefined, sceneOf(gone));
    assert.deepEqual([first.count, counted(first)], [4, ['gone 1 4']]);
    const next = statusAfter(first, sceneOf([count('a', FIRST, 1)]));
    assert.deepEqual([next.count, counted(next)], [5, ['a 1 1']]);
  });

  it('begins anew with another revision, and ignores reports on others', () => {
    const first = statusAfter(undefined, sceneOf([count('a', FIRST, 3)]));
    const second = revision(2, 'Serving', { snapshot: SNAPSHOT });
    const late = [count('a', FIRST, 9)];
    const changed = view([revision(1, 'Retired'), second], [replica('a', { 2: 'Serving' })], { monitored: late });
    const status = statusAfter(first, changed);
    assert.deepEqual([status.revision, status.count], [2, 0]);
    assert.deepEqual(settledCounts(status, late), late);
  });

  it('has a sum that API servers accept, whatever replicas count', () => {
    const most = Number.MAX_SAFE_INTEGER;
    const all = [count('a', FIRST, most), count('a', SECOND, most), count('b', FIRST, most)];
    const status = statusAfter(undefined, sceneOf(all));
    assert.equal(status.count, most);
    assert.deepEqual(settledCounts(status, all), all, 'they are not added again');
  });

  it('is gone when a revision in protect mode serves, and stays while nothing serves', () => {
    const before = statusAfter(undefined, sceneOf([count('a', FIRST, 3)]));
    const status = { monitored: before } as AdmissionPolicyStatus;
    const starting = sceneOf([], { replicas: [replica('a', { 1: 'Loading' })] });
    assert.equal(monitoredStatus(starting, status), before);
    const protecting = view(
      [revision(1, 'Retired', { snapshot: SNAPSHOT }), revision(2, 'Serving')],
      [replica('a', { 2: 'Serving' })],
    );
    assert.equal(monitoredStatus(protecting, status), undefined);
    assert.deepEqual(settledCounts(undefined, [count('a', FIRST, 3)]).length, 1);
  });
});
