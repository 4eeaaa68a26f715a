import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { MAX_AUDITED_KINDS, MAX_LISTED_FINDINGS } from '../../resources/index.ts';
import { type Coverage, NO_COUNTS } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';
import { auditStatus } from './audit-status.ts';

const PODS = { group: '', version: 'v1', resource: 'pods', kind: 'Pod', namespaced: true };
const DEPLOYMENTS = { group: 'apps', version: 'v1', resource: 'deployments', kind: 'Deployment', namespaced: true };
const EARLY = '2026-11-29T10:00:00Z';
const LATE = '2026-11-29T11:00:00Z';

function covered(more: Partial<Coverage>): Coverage {
  return { policy: 'cap/p', kind: PODS, state: 'Scanned', counts: NO_COUNTS, ...more };
}

function finding(name: string, more: Partial<AuditFinding> = {}): AuditFinding {
  const object = { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name };
  return { policy: 'cap/p', policyId: 'kw.cap.p', policyUid: 'u', mode: 'protect', result: 'fail', object, ...more };
}

const statusOf = (
  coverage: readonly Coverage[],
  findings: readonly AuditFinding[] = [],
): ReturnType<typeof auditStatus> => auditStatus({ generation: 2, coverage, findings }, undefined);

describe('the audit in the status of a policy', () => {
  it('is complete where all kinds are scanned, since the earliest scan', () => {
    const counts = { ...NO_COUNTS, scanned: 9, matched: 5, passed: 3, failed: 2 };
    const status = statusOf([
      covered({ scannedAt: LATE, counts }),
      covered({ kind: DEPLOYMENTS, scannedAt: EARLY, counts }),
      covered({ kind: DEPLOYMENTS, state: 'NotServed', reason: 'NotServed' }),
    ]);
    assert.deepEqual(
      [status.state, status.summary, status.lastCompleteScan, status.observedGeneration],
      ['Complete', '4', EARLY, 2],
    );
    assert.deepEqual(status.counts, { matched: 10, passed: 6, failed: 4, wouldChange: 0, skipped: 0, unjudged: 0 });
    assert.equal(status.message, '4 of 10 objects would be rejected');
  });

  it('never says zero where something is not known', () => {
    const missingRule = { apiGroups: ['apps'], resources: ['deployments'], verbs: ['list'] };
    const gap = covered({ kind: DEPLOYMENTS, state: 'Forbidden', reason: 'Forbidden', message: 'no', missingRule });
    const clean = statusOf([covered({ scannedAt: EARLY }), gap]);
    assert.deepEqual([clean.state, clean.reason, clean.summary], ['Incomplete', 'Forbidden', 'Unknown']);
    assert.equal(clean.lastCompleteScan, undefined);
    assert.equal(clean.message, 'deployments.apps: no');
    assert.deepEqual(clean.kinds?.[0], {
      group: 'apps',
      resource: 'deployments',
      state: 'Forbidden',
      reason: 'Forbidden',
      message: 'no',
      missingRule,
    });
    const some = statusOf([covered({ counts: { ...NO_COUNTS, matched: 3, failed: 3 } }), gap]);
    assert.deepEqual([some.state, some.summary], ['Incomplete', '3+']);
    const pending = statusOf([covered({ state: 'Pending', reason: 'NotScanned' }), gap]);
    assert.deepEqual([pending.state, pending.summary], ['Pending', 'Unknown']);
  });

  it('is not auditable only where nothing of the policy is', () => {
    const refusal = covered({ state: 'NotAuditable', reason: 'UserInfo', message: 'reads the user' });
    const none = statusOf([refusal]);
    assert.deepEqual(
      [none.state, none.reason, none.message, none.summary],
      ['NotAuditable', 'UserInfo', 'reads the user', 'NotAuditable'],
    );
    assert.equal(statusOf([refusal, covered({})]).state, 'Complete');
  });

  it('keeps the time of the last complete scan while something is not known, of the same generation', () => {
    const before = statusOf([covered({ scannedAt: EARLY })]);
    const coverage = [covered({ state: 'Failed', reason: 'ListFailed' })];
    assert.equal(auditStatus({ generation: 2, coverage, findings: [] }, before).lastCompleteScan, EARLY);
    assert.equal(auditStatus({ generation: 3, coverage, findings: [] }, before).lastCompleteScan, undefined);
  });

  it('lists the findings whose objects changed last, whatever their order', () => {
    const many = Array.from({ length: 1_000 }, (_, at) => finding(`pod-${at}`, { objectVersion: String(at) }));
    const others = [finding('error', { result: 'error', objectVersion: '9000' })];
    const names = Array.from({ length: MAX_LISTED_FINDINGS }, (_, at) => `pod-${999 - at}`);
    for (const findings of [many, many.toReversed()]) {
      const status = statusOf([covered({})], [...others, ...findings]);
      assert.deepEqual(
        status.findings?.map(({ name }) => name),
        names,
      );
    }
  });

  it('is bounded: kinds, and messages that users wrote', () => {
    const coverage = Array.from({ length: MAX_AUDITED_KINDS + 3 }, (_, at) =>
      covered({ kind: { ...PODS, resource: `r${at}` } }),
    );
    const gap = covered({ kind: DEPLOYMENTS, state: 'Failed', message: 'x'.repeat(9_000) });
    const status = statusOf([...coverage, gap], [finding('a', { message: 'y'.repeat(9_000) })]);
    assert.equal(status.kinds?.length, MAX_AUDITED_KINDS);
    assert.equal(status.omittedKinds, 4);
    // What is not known is listed in any case.
    assert.equal(status.kinds?.[0]?.state, 'Failed');
    assert.ok(JSON.stringify(status).length < 4_500);
  });
});
