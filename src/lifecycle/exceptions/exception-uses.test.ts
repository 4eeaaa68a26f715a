import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ReplicaUse } from '../replicas/exception-reports.ts';
import { differOnlyInUses, settledUses, usesStatus } from './exception-uses.ts';

const at = (second: number): string => `2026-01-01T00:00:0${second}.500Z`;
const use = (replica: string, since: number, count: number, last = since): ReplicaUse => ({
  uid: 'u',
  replica,
  since: at(since),
  count,
  last: at(last),
});
const always = (): boolean => true;

describe('the uses of an exception', () => {
  it('are those of all replicas, each counted once', () => {
    const first = usesStatus(undefined, [use('a', 1, 3), use('b', 2, 4, 5)], always);
    assert.deepEqual([first.used, first.lastUsed], [7, '2026-01-01T00:00:05Z']);
    const again = usesStatus(first, [use('a', 1, 3), use('b', 2, 6, 4)], always);
    assert.deepEqual([again.used, again.lastUsed], [9, '2026-01-01T00:00:05Z']);
    assert.deepEqual(usesStatus(again, [use('a', 1, 3)], always), again, 'nothing new');
  });

  it('go on when a replica restarts, also when its clock was set back', () => {
    const before = usesStatus(undefined, [use('a', 5, 3)], always);
    const restarted = usesStatus(before, [use('a', 2, 1)], always);
    assert.equal(restarted.used, 4);
    assert.deepEqual(restarted.usedBy, [{ name: 'a', since: at(2), count: 1 }]);
    assert.equal(usesStatus(restarted, [use('a', 2, 2)], always).used, 5);
  });

  it('keep what a process that ended has reported, and that it is contained until the report is gone', () => {
    const reports = [use('a', 1, 3), use('a', 2, 1)];
    const both = usesStatus(undefined, reports, always);
    assert.equal(both.used, 4);
    // A write whose answer is lost is repeated.
    assert.deepEqual(usesStatus(both, reports, always), both);
    assert.deepEqual(settledUses(both, reports), reports);
    assert.deepEqual(settledUses(both, [use('a', 2, 2)]), []);
  });

  it('forget replicas that cannot report any more, once something is written', () => {
    const both = usesStatus(undefined, [use('a', 1, 3), use('b', 1, 1)], always);
    const later = usesStatus(both, [use('b', 1, 2)], (name) => name === 'b');
    assert.deepEqual([later.used, later.usedBy], [5, [{ name: 'b', since: at(1), count: 2 }]]);
  });

  it('stay a number that is exact', () => {
    const { used } = usesStatus({ used: Number.MAX_SAFE_INTEGER }, [use('a', 1, 3)], always);
    assert.equal(used, Number.MAX_SAFE_INTEGER);
  });

  it('are told from other changes of a status', () => {
    const status = { state: 'Active', used: 1 } as const;
    assert.equal(differOnlyInUses(status, { state: 'Active', used: 2, usedBy: [] }), true);
    assert.equal(differOnlyInUses(status, { state: 'Expired', used: 1 }), false);
  });
});
