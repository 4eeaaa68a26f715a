import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { PolicyException } from '../../resources/index.ts';
import { type Coverage, type CoverageState, NO_COUNTS } from '../coverage.ts';
import type { AuditFinding } from '../finding.ts';
import { matchedStatus } from './matched-status.ts';

const [PODS, MAPS] = (['Pod', 'ConfigMap'] as const).map((kind) => ({
  group: '',
  version: 'v1',
  resource: `${kind.toLowerCase()}s`,
  kind,
  namespaced: true,
}));

const EXCEPTION: PolicyException = {
  apiVersion: 'portcullis.dev/v1',
  kind: 'PolicyException',
  metadata: { namespace: 'shop', name: 'importer', uid: 'u', generation: 2 },
  spec: {
    policies: [{ kind: 'ClusterAdmissionPolicy', name: 'p' }],
    objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], names: ['importer'] },
    reason: 'a test',
    expiresAt: '2027-01-31T12:00:00Z',
  },
  status: {
    accepted: { uid: 'u', generation: 2, policies: [{ kind: 'ClusterAdmissionPolicy', name: 'p', uid: 'p' }] },
  },
};

function entry(state: CoverageState, rest: Partial<Coverage> = {}): Coverage {
  return { policy: 'ClusterAdmissionPolicy p', ...(PODS && { kind: PODS }), state, counts: NO_COUNTS, ...rest };
}

function skipped(name: string, rest: Partial<AuditFinding> = {}): AuditFinding {
  return {
    policy: 'p',
    policyId: 'kw.cap.p',
    policyUid: 'p',
    mode: 'protect',
    result: 'skip',
    object: { apiVersion: 'v1', kind: 'Pod', namespace: 'shop', name },
    exception: 'shop/importer',
    ...rest,
  };
}

function summaryOf(findings: readonly AuditFinding[], coverage: readonly Coverage[] | undefined): string | undefined {
  const known = (id: string): readonly Coverage[] | undefined => (id === 'kw.cap.p' ? coverage : assert.fail(id));
  const matched = matchedStatus(EXCEPTION, { findings, coverage: known });
  return matched && [matched.summary, matched.count, matched.message ?? ''].join(' | ');
}

describe('the existing objects that an exception is for', () => {
  it('are those that a policy would reject without it, each counted once', () => {
    const findings = [
      skipped('a'),
      skipped('a', { policyId: 'kw.cap.q' }),
      skipped('b'),
      skipped('c', { exception: 'shop/another' }),
      skipped('d', { result: 'fail' }),
    ];
    assert.equal(summaryOf(findings, [entry('Scanned')]), '2 | 2 | ');
    assert.equal(summaryOf([], [entry('Scanned')]), '0 | 0 | ');
    assert.equal(matchedStatus(EXCEPTION, { findings, coverage: () => [] })?.observedGeneration, 2);
  });

  it('are not known while objects are yet to be judged', () => {
    assert.equal(summaryOf([], [entry('Pending')]), undefined);
    assert.equal(summaryOf([], undefined), undefined);
  });

  for (const [state, rest, message] of [
    ['Forbidden', { message: 'pods is forbidden' }, 'ClusterAdmissionPolicy p, pods: pods is forbidden'],
    ['Partial', { reason: 'NotJudged' }, 'ClusterAdmissionPolicy p, pods: NotJudged'],
    [
      'NotAuditable',
      { reason: 'UserInfo', message: 'it reads who asks' },
      'ClusterAdmissionPolicy p, pods: it reads who asks',
    ],
  ] as const) {
    it(`are at least those that are known where some are ${state}, and no number of its own is zero`, () => {
      assert.equal(summaryOf([skipped('a')], [entry(state, rest)]), `1+ | 1 | ${message}`);
      assert.equal(summaryOf([], [entry(state, rest)]), `Unknown | 0 | ${message}`);
    });
  }

  it('do not depend on kinds and namespaces that the exception is not for', () => {
    const others = [entry('Pending', MAPS && { kind: MAPS }), entry('Forbidden', { namespace: 'other' })];
    assert.equal(summaryOf([skipped('a')], [entry('Scanned'), ...others]), '1 | 1 | ');
    const { kind: _, ...all } = entry('Failed', { message: 'no discovery' });
    assert.equal(summaryOf([], [all]), 'Unknown | 0 | ClusterAdmissionPolicy p: no discovery');
  });
});
