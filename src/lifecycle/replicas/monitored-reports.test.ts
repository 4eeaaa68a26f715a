import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { MonitoredReport, RevisionReport } from '../../control/index.ts';
import {
  MAX_MONITORED_REPORTS,
  MAX_MONITORED_TEXT,
  MAX_REPLICA_PROCESSES,
  MAX_REPLICA_REPORTS,
  MonitoredReports,
} from './monitored-reports.ts';

const A = { name: 'a', policyServer: 'default' };
const B = { name: 'b', policyServer: 'default' };
const SINCE = '2026-01-01T00:00:00.000Z';

function report(policy: string, monitored?: Partial<MonitoredReport>): RevisionReport {
  const counts = monitored && { since: SINCE, count: 1, last: [], ...monitored };
  return { name: `${policy}-1`, uid: 'u', policy, revision: 1, state: 'Serving', ...(counts && { monitored: counts }) };
}

describe('MonitoredReports', () => {
  it('keeps the newest count of each process until it is dropped', () => {
    const reports = new MonitoredReports();
    assert.deepEqual([...reports.receive(A, [report('p', { count: 2 }), report('other')])], ['p']);
    assert.deepEqual([...reports.receive(A, [report('p', { count: 2 })])], [], 'nothing new');
    const [old] = reports.of('p');
    assert.ok(old);
    reports.receive(A, [report('p', { count: 3 })]);
    reports.receive(A, [report('p', { since: '2026-01-01T00:00:00.001Z' })]);
    reports.receive(B, [report('p', { count: 7 })]);
    reports.drop([old]);
    const counts = reports.of('p');
    assert.deepEqual(counts.map(({ replica, count }) => `${replica} ${count}`).toSorted(), ['a 1', 'a 3', 'b 7']);
    reports.drop(counts);
    assert.deepEqual([reports.of('p'), reports.of('other')], [[], []]);
  });

  it('is bounded: beyond the limits it keeps counts without requests, then no further counts', () => {
    const reports = new MonitoredReports();
    const message = 'x'.repeat(MAX_MONITORED_TEXT / 2);
    const last = [{ time: SINCE, message }];
    reports.receive(A, [report('p', { last })]);
    reports.receive(B, [report('p', { last })]);
    assert.deepEqual(
      reports.of('p').map(({ last: kept }) => kept.length),
      [1, 0],
    );
    reports.drop(reports.of('p'));
    const all = Array.from({ length: MAX_MONITORED_REPORTS + 1 }, (_, index) =>
      report(`p${index}`, { last: index === 0 ? last : [] }),
    );
    for (let start = 0; start < all.length; start += MAX_REPLICA_REPORTS) {
      const replica = { ...A, name: `replica-${start}` };
      reports.receive(replica, all.slice(start, start + MAX_REPLICA_REPORTS));
    }
    assert.equal(reports.of(`p${MAX_MONITORED_REPORTS - 1}`).length, 1);
    assert.equal(reports.of(`p${MAX_MONITORED_REPORTS}`).length, 0);
    assert.equal(reports.of('p0')[0]?.last.length, 1, 'dropped texts make room');
  });

  it('has room for others when one replica counts for policies that do not exist', () => {
    const reports = new MonitoredReports();
    const made = Array.from({ length: MAX_REPLICA_REPORTS + 1 }, (_, index) => report(`made-up-${index}`, {}));
    reports.receive(A, made);
    assert.equal(reports.of(`made-up-${MAX_REPLICA_REPORTS}`).length, 0);
    reports.receive(B, [report('p', {})]);
    assert.equal(reports.of('p').length, 1);
    reports.drop(reports.of('made-up-0'));
    reports.receive(A, [report('p', {})]);
    assert.equal(reports.of('p').length, 2, 'what is dropped makes room');
  });

  it('keeps few counts of one replica for a policy, however often its process says that it has begun', () => {
    const reports = new MonitoredReports();
    for (let index = 0; index < 1_000; index += 1) {
      reports.receive(A, [report('p', { since: new Date(Date.parse(SINCE) + index).toISOString() })]);
    }
    reports.receive(B, [report('p', {})]);
    assert.equal(reports.of('p').length, MAX_REPLICA_PROCESSES + 1);
  });
});
