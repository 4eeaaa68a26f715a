import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Coverage, NO_COUNTS } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';
import { type OwnAudit, SummedAudit } from './summed-audit.ts';

const ORIGIN = { uid: 'uid-1', generation: 1 };
const CLUSTER_POLICY = 'kw.cap.one';
const TENANT_POLICY = 'kw.ap.shop.one';

/** An auditor that found something in its namespaces. */
function own(failed: number, namespace: string, origin = ORIGIN) {
  const listeners = new Set<(id: string) => void>();
  const coverage: Coverage = {
    policy: 'cap/one',
    kind: { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true },
    state: 'Scanned',
    counts: { ...NO_COUNTS, scanned: failed, matched: failed, failed },
    scannedAt: '2026-01-01T00:00:00.000Z',
  };
  const object = { apiVersion: 'v1', kind: 'Pod', namespace, name: 'web', uid: 'u' };
  const finding = { result: 'fail', object, message: 'no', objectVersion: '5' } as AuditFinding;
  const audit: OwnAudit = {
    coverage: () => [coverage],
    originOf: () => origin,
    ofPolicy: () => [finding],
    policyIds: () => [CLUSTER_POLICY, TENANT_POLICY],
    onCoverage: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return { audit, told: () => listeners.forEach((listener) => [CLUSTER_POLICY, TENANT_POLICY].forEach(listener)) };
}

/** Members as one of them sees the others. */
function members(
  ids: readonly string[],
  others: Readonly<Record<string, Readonly<Record<string, string>>>>,
  writes = true,
) {
  return {
    members: ids,
    others: Object.entries(others).map(([id, annotations]) => ({ id, annotations })),
    mayWrite: () => writes,
    onChange: () => () => undefined,
    onOthers: () => () => undefined,
  };
}

/** The annotations of another auditor. */
function annotationsOf(ids: readonly string[], other: ReturnType<typeof own>): Readonly<Record<string, string>> {
  const audit = new SummedAudit(other.audit, members(ids, {}));
  other.told();
  return audit.annotations();
}

describe('what auditors know together', () => {
  const failedOf = (audit: SummedAudit, id = CLUSTER_POLICY): readonly unknown[] =>
    (audit.coverage(id) ?? []).map(({ state, counts }) => [state, counts.failed]);

  it('is the sum for policies of the cluster, with the findings of others', () => {
    const annotations = annotationsOf(['a', 'b'], own(3, 'shop'));
    const audit = new SummedAudit(own(2, 'play').audit, members(['a', 'b'], { b: annotations }));
    assert.deepEqual(failedOf(audit), [['Scanned', 5]]);
    assert.deepEqual(
      [...audit.ofPolicy(CLUSTER_POLICY)].map(({ object }) => object.namespace),
      ['play', 'shop'],
    );
  });

  it('is what this one knows by a policy of its own namespace', () => {
    const annotations = annotationsOf(['a', 'b'], own(3, 'shop'));
    const audit = new SummedAudit(own(2, 'shop').audit, members(['a', 'b'], { b: annotations }));
    assert.deepEqual(failedOf(audit, TENANT_POLICY), [['Scanned', 2]]);
    assert.equal([...audit.ofPolicy(TENANT_POLICY)].length, 1);
  });

  for (const [what, annotations] of [
    ['says nothing', {}],
    ['has other members in mind', annotationsOf(['b', 'c'], own(3, 'shop'))],
    ['judged another generation', annotationsOf(['a', 'b'], own(3, 'shop', { uid: 'uid-1', generation: 2 }))],
  ] as const) {
    it(`is not known while another one ${what}`, () => {
      const audit = new SummedAudit(own(2, 'play').audit, members(['a', 'b'], { b: annotations }));
      assert.deepEqual(
        failedOf(audit).map((one) => (one as unknown[])[0]),
        ['Pending'],
      );
    });
  }

  it('is not said by an auditor that does not write the status', () => {
    const audit = new SummedAudit(own(2, 'play').audit, members(['a'], {}, false));
    assert.equal(audit.coverage(CLUSTER_POLICY), undefined);
  });

  it('is told to nobody where there is nobody, and written anew only when it changed', () => {
    const alone = own(2, 'play');
    const audit = new SummedAudit(alone.audit, members(['a'], {}));
    alone.told();
    assert.deepEqual(audit.annotations(), {});
    const other = own(2, 'play');
    const both = new SummedAudit(other.audit, members(['a', 'b'], {}));
    other.told();
    assert.equal(
      both.annotations()['portcullis.dev/audit-summary'],
      both.annotations()['portcullis.dev/audit-summary'],
    );
    assert.ok(JSON.stringify(both.annotations()).length > 50);
  });
});
