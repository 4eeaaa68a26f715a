import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { RevisionReport } from '../../control/index.ts';
import { MAX_TEXT, ReplicaReports } from './replica-reports.ts';
import { reportOf } from './testing/test-replica.ts';

const policies = ['a', 'b', 'c'];
/** Names that several policies share: an object may have been replaced by another one of the same name. */
const anyReport: fc.Arbitrary<RevisionReport> = fc.record(
  {
    name: fc.constantFrom('x-1', 'x-2', 'y-1'),
    uid: fc.constantFrom('u1', 'u2'),
    policy: fc.constantFrom(...policies),
    revision: fc.constantFrom(1, 2),
    state: fc.constantFrom('Loading', 'Serving'),
    order: fc.constantFrom(1, 2),
  },
  { noNullPrototype: true },
);
const anyDelta = fc.record({
  revisions: fc.array(anyReport, { maxLength: 3 }),
  gone: fc.array(fc.constantFrom('x-1', 'x-2', 'y-1', 'z'), { maxLength: 2 }),
});

describe('ReplicaReports', () => {
  it('equal the sum of all reports, and return the changed policies', () => {
    fc.assert(
      fc.property(fc.array(anyDelta, { maxLength: 6 }), (deltas) => {
        const reports = new ReplicaReports();
        const model = new Map<string, RevisionReport>();
        const ofModel = (policy: string): unknown =>
          new Set([...model.values()].filter((one) => one.policy === policy));
        for (const delta of deltas) {
          const before = policies.map((policy) => new Set(reports.of(policy)));
          for (const name of delta.gone) {
            model.delete(name);
          }
          for (const report of delta.revisions) {
            model.set(report.name, report);
          }
          const changed = reports.apply(delta);
          for (const [index, policy] of policies.entries()) {
            const now = new Set(reports.of(policy));
            assert.deepEqual(now, ofModel(policy));
            try {
              assert.deepEqual(now, before[index]);
            } catch {
              assert.ok(changed.has(policy), `a change of ${policy} is not reported`);
            }
          }
        }
        const whole = new ReplicaReports();
        whole.apply({ revisions: [...model.values()], gone: [] });
        assert.deepEqual(whole.differences(reports), new Set());
      }),
    );
  });

  it('differ where one lacks a report, has more, or has another one', () => {
    const [one, other] = [new ReplicaReports(), new ReplicaReports()];
    one.apply({ revisions: [reportOf('a', 1), reportOf('b', 1), reportOf('c', 1)], gone: [] });
    other.apply({ revisions: [reportOf('a', 1), reportOf('b', 1, 'Failed'), reportOf('d', 1)], gone: [] });
    assert.deepEqual([...one.differences(other)].toSorted(), ['b', 'c', 'd']);
    assert.deepEqual([...other.differences(one)].toSorted(), ['b', 'c', 'd']);
  });

  it('differ where only the namespaces differ that are refused for their parameters', () => {
    const refused = { count: 1, tried: 2, first: [{ namespace: 'tool-a', message: 'no uid' }] };
    const reports = new ReplicaReports();
    const report = reportOf('a', 1);
    reports.apply({ revisions: [report], gone: [] });
    for (const [next, isNew] of [
      [{ ...report, refused }, true],
      [{ ...report, refused: structuredClone(refused) }, false],
      [{ ...report, refused: { ...refused, first: [{ namespace: 'tool-b', message: 'no uid' }] } }, true],
      [report, true],
    ] as const) {
      assert.deepEqual([...reports.apply({ revisions: [next], gone: [] })], isNew ? ['a'] : []);
    }
  });

  it('differ where only the parameters differ for which a revision waits', () => {
    const waiting = { ...reportOf('a', 1, 'Failed'), parameters: 'x' };
    const reports = new ReplicaReports();
    reports.apply({ revisions: [waiting], gone: [] });
    assert.deepEqual(
      reports.apply({ revisions: [{ ...waiting, parameters: 'y' }], gone: [] }),
      new Set([waiting.policy]),
    );
    assert.deepEqual(reports.apply({ revisions: [{ ...waiting, parameters: 'y' }], gone: [] }), new Set());
  });

  it('are bounded, and free the space of replaced reports', () => {
    const message = 'x'.repeat(4096);
    const reports = new ReplicaReports();
    for (let time = 0; time < (2 * MAX_TEXT) / 4096; time += 1) {
      reports.apply({ revisions: [{ ...reportOf('a', 1), message: `${message}${time % 2}` }], gone: [] });
    }
    assert.equal(reports.of('a').length, 1);
    const many = Array.from({ length: MAX_TEXT / 4096 }, (_, index) => ({ ...reportOf('a', index + 1), message }));
    assert.throws(() => reports.apply({ revisions: many, gone: [] }), RangeError);
  });
});
