import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ExceptionUse } from '../../control/index.ts';
import { ExceptionReports } from './exception-reports.ts';
import { MAX_MONITORED_REPORTS, MAX_REPLICA_PROCESSES, MAX_REPLICA_REPORTS } from './monitored-reports.ts';

const TIME = '2026-01-01T00:00:00.000Z';
const use = (uid: string, count = 1, since = TIME): ExceptionUse => ({ uid, since, count, last: TIME });
const many = (prefix: string, count: number): readonly ExceptionUse[] =>
  Array.from({ length: count }, (_, index) => use(`${prefix}${index}`));

describe('ExceptionReports', () => {
  it('keeps the newest count of each process until it is dropped, and tells of new ones', () => {
    const reports = new ExceptionReports();
    const told: string[] = [];
    const unsubscribe = reports.subscribe((uids) => told.push([...uids].join(' ')));
    reports.receive('a', [use('x', 2), use('y')]);
    reports.receive('a', [use('x', 2)]);
    const [old] = reports.of('x');
    assert.ok(old);
    reports.receive('a', [use('x', 3)]);
    reports.receive('a', [use('x', 1, '2026-01-01T00:00:00.001Z')]);
    reports.receive('b', [use('x', 7)]);
    assert.deepEqual(told, ['x y', 'x', 'x', 'x']);
    reports.drop([old]);
    assert.deepEqual(
      reports.of('x').map(({ replica, count }) => `${replica} ${count}`),
      ['a 3', 'a 1', 'b 7'],
    );
    reports.drop(reports.of('x'));
    assert.deepEqual([reports.of('x'), reports.of('y').length], [[], 1]);
    reports.gone('b');
    reports.gone('a');
    assert.deepEqual(told.slice(4), ['y']);
    reports.clear();
    assert.deepEqual(reports.of('y'), []);
    unsubscribe();
    reports.receive('a', [use('z')]);
    assert.equal(told.length, 5);
  });

  it('is bounded: for a replica, for its processes, and in all; what is dropped makes room', () => {
    const reports = new ExceptionReports();
    reports.receive('a', many('a', MAX_REPLICA_REPORTS + 1));
    assert.equal(reports.of(`a${MAX_REPLICA_REPORTS}`).length, 0);
    reports.receive('a', [use('a0', 2)]);
    assert.equal(reports.of('a0')[0]?.count, 2);
    reports.drop(reports.of('a0'));
    reports.receive('a', [use('other')]);
    assert.equal(reports.of('other').length, 1);
    for (let process = 0; process <= MAX_REPLICA_PROCESSES; process += 1) {
      reports.receive('b', [use('b', 1, `2026-01-01T00:00:00.${100 + process}Z`)]);
    }
    assert.equal(reports.of('b').length, MAX_REPLICA_PROCESSES);
    const left = MAX_MONITORED_REPORTS - MAX_REPLICA_REPORTS - MAX_REPLICA_PROCESSES;
    reports.receive('c', many('c', MAX_REPLICA_REPORTS));
    reports.receive('d', many('d', left - MAX_REPLICA_REPORTS + 1));
    assert.equal(reports.of(`d${left - MAX_REPLICA_REPORTS - 1}`).length, 1);
    assert.equal(reports.of(`d${left - MAX_REPLICA_REPORTS}`).length, 0);
  });
});
