import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCondition, type PolicyStatus, READY, RECONCILING, STALLED } from '../../resources/index.ts';
import { POLICY_ACTIVE, POLICY_UP_TO_DATE, policyStatus } from './policy-status.ts';
import { REASONS } from './reasons.ts';
import type { RolloutView } from './rollout-view.ts';
import { NOW, replica, revision, spec, view } from './testing/rollout-scene.ts';

const MINUTE = 60_000;
const first = revision(1, 'Serving');
const both = [replica('a', { 1: 'Serving' }), replica('b', { 1: 'Serving' })];
const FETCH = { state: 'Failed', reason: 'FetchFailed', message: 'no route', nextRetry: NOW + 5_500 } as const;

function statusOf(scene: RolloutView, before?: PolicyStatus, now = NOW): PolicyStatus {
  return policyStatus(scene, undefined, before, now);
}

/** What a condition says, in a line. */
function told(status: PolicyStatus, type: string): string {
  const { status: value, reason, message } = findCondition(status.conditions, type) ?? {};
  return `${value} ${reason}: ${message}`;
}

describe('the status of a policy', () => {
  it('says everything of one that serves everywhere', () => {
    const message = 'revision 1 serves on every replica';
    const about = { status: 'True', observedGeneration: 4, lastTransitionTime: '2026-01-01T00:00:00Z' };
    assert.deepEqual(statusOf(view([first], both, { generation: 4 })), {
      policyStatus: 'active',
      mode: 'protect',
      phase: 'Active',
      reason: 'Serving',
      message,
      observedGeneration: 4,
      desiredRevision: 1,
      servingRevision: 1,
      readyReplicas: 2,
      totalReplicas: 2,
      conditions: [
        { ...about, type: POLICY_ACTIVE, reason: 'Serving', message: 'revision 1 serves' },
        { ...about, type: POLICY_UP_TO_DATE, reason: 'Serving', message },
        { ...about, type: READY, reason: 'Serving', message },
      ],
    });
  });

  for (const [when, scene, upstream, mode, desired, serving, ready] of [
    [
      'nothing is known of a server',
      view([revision(1, 'Candidate')], [], { hasPolicyServer: false }),
      'scheduled',
      'unknown',
      1,
      0,
      0,
    ],
    ['there is a server', view([revision(1, 'Candidate')], []), 'pending', 'unknown', 1, 0, 0],
    ['replicas load it', view([revision(1, 'Validated')], [replica('a')]), 'pending', 'unknown', 1, 0, 0],
    ['it serves and is not asked', view([first], both, { isAsked: false }), 'pending', 'unknown', 1, 1, 2],
    [
      'one replica serves it',
      view([first], [replica('a', { 1: 'Serving' }), replica('b', { 1: FETCH })]),
      'active',
      'protect',
      1,
      1,
      1,
    ],
    ['no replica can', view([first], [replica('a', { 1: FETCH })]), 'pending', 'unknown', 1, 0, 0],
    ['no replica is left', view([first], []), 'pending', 'unknown', 1, 0, 0],
    ['no replica answers', view([first], [replica('a', {}, 'lost')]), 'active', 'protect', 1, 1, 0],
    [
      'the newest failed',
      view([first, revision(2, 'Failed', { reason: 'InvalidSettings' })], both),
      'active',
      'protect',
      2,
      1,
      0,
    ],
    ['a pin finds nothing', view([first], both, { pin: 9 }), 'active', 'protect', 9, 1, 0],
    [
      'what serves only watches',
      view([revision(1, 'Serving', { snapshot: spec('1', { mode: 'monitor' }) })], both),
      'active',
      'monitor',
      1,
      1,
      2,
    ],
  ] as const) {
    it(`has upstream's fields and the revisions when ${when}`, () => {
      const status = statusOf(scene);
      assert.deepEqual(
        [status.policyStatus, status.mode, status.desiredRevision, status.servingRevision, status.readyReplicas],
        [upstream, mode, desired, serving, ready],
      );
    });
  }

  it('says by which revision requests are answered while another one comes, and after it failed', () => {
    const loading = statusOf(view([first, revision(2, 'Validated')], both));
    assert.equal(told(loading, POLICY_ACTIVE), 'True Serving: revision 1 serves');
    assert.equal(told(loading, POLICY_UP_TO_DATE), 'False Staging: revision 2 is loaded by 0 of 2 replicas');
    const failed = revision(2, 'Failed', { reason: 'InvalidSettings', message: 'expected a list' });
    const degraded = statusOf(view([first, failed], both));
    assert.equal(told(degraded, POLICY_ACTIVE), 'True Serving: revision 1 serves');
    assert.match(told(degraded, POLICY_UP_TO_DATE), /^False InvalidSettings: revision 2 failed/);
  });

  it('says why requests are not answered, and that it does not know', () => {
    const failing = statusOf(view([first], [replica('a', { 1: FETCH })]));
    assert.match(told(failing, POLICY_ACTIVE), /^False FetchFailed: revision 1 is not on 1 of 1 replicas: a: no route/);
    const lost = statusOf(view([first], [replica('a', {}, 'lost')]));
    assert.match(told(lost, POLICY_ACTIVE), /^Unknown ReplicaUnreachable: revision 1 served when/);
  });

  it('is up to date where a pin holds an older revision: that is what is desired', () => {
    const status = statusOf(view([first, revision(2, 'Failed')], both, { pin: 1 }));
    assert.equal(status.phase, 'RolledBack');
    assert.match(told(status, POLICY_UP_TO_DATE), /^True Pinned: /);
  });

  it('says when what failed is tried again: by the controller, or first by one of the replicas', () => {
    const candidate = revision(1, 'Candidate', { reason: 'FetchFailed', nextRetry: NOW + 2_000 });
    assert.equal(statusOf(view([candidate], [replica('a')])).nextRetry, '2026-01-01T00:00:02Z');
    const replicas = [replica('a', { 1: { ...FETCH, nextRetry: NOW + 9_000 } }), replica('b', { 1: FETCH })];
    assert.equal(statusOf(view([first], replicas)).nextRetry, '2026-01-01T00:00:05Z');
    assert.equal('nextRetry' in statusOf(view([first], both)), false);
  });

  it('stays what it was while a new leader has not heard the replicas', () => {
    const before = statusOf(view([first], both));
    const next = statusOf(view([first, revision(2, 'Validated')], undefined, { generation: 2 }), before, NOW + MINUTE);
    assert.equal(next, before);
  });

  it('says of a new policy that the controller has not heard the replicas yet', () => {
    const { phase, reason, policyStatus: upstream } = statusOf(view([revision(1, 'Candidate')], undefined));
    assert.deepEqual([phase, reason, upstream], ['Pending', REASONS.controllerStarting, 'pending']);
    // As a policy that was applied again with the status of another tool.
    const other = statusOf(view([revision(1, 'Candidate')], undefined), { policyStatus: 'active' });
    assert.equal(other.phase, 'Pending');
  });

  it('is the same where nothing differs, and keeps since when what did not change is so', () => {
    const before = statusOf(view([first], both));
    assert.deepEqual(statusOf(view([first], both), before, NOW + MINUTE), before);
    const after = statusOf(view([first, revision(2, 'Validated')], both), before, NOW + MINUTE);
    assert.equal(findCondition(after.conditions, POLICY_ACTIVE)?.lastTransitionTime, '2026-01-01T00:00:00Z');
    assert.equal(findCondition(after.conditions, POLICY_UP_TO_DATE)?.lastTransitionTime, '2026-01-01T00:01:00Z');
  });

  it('leaves conditions of others alone', () => {
    const foreign = {
      type: 'Reviewed',
      status: 'True',
      lastTransitionTime: '2025-01-01T00:00:00Z',
      reason: 'ByHand',
      message: '',
    } as const;
    const { conditions = [] } = statusOf(view([first], both), { phase: 'Pending', conditions: [foreign] });
    assert.deepEqual(conditions[0], foreign);
    assert.deepEqual(
      conditions.slice(1).map(({ type }) => type),
      [POLICY_ACTIVE, POLICY_UP_TO_DATE, READY],
    );
  });

  it('has the conditions that kstatus reads: ready, on its way, or stalled', () => {
    const abnormal = (status: PolicyStatus): string[] =>
      [READY, RECONCILING, STALLED].map((type) => told(status, type).split(':')[0] ?? '');
    const none = 'undefined undefined';
    assert.deepEqual(abnormal(statusOf(view([first], both))), ['True Serving', none, none]);
    const loading = statusOf(view([first, revision(2, 'Validated')], both));
    assert.deepEqual(abnormal(loading), ['False Staging', 'True Staging', none]);
    const failed = revision(2, 'Failed', { reason: 'InvalidSettings', message: 'expected a list' });
    const stalled = statusOf(view([first, failed], both), loading);
    assert.deepEqual(abnormal(stalled), ['False InvalidSettings', none, 'True InvalidSettings']);
    assert.deepEqual(abnormal(statusOf(view([first], both), stalled)), ['True Serving', none, none]);
  });

  it('tells of a failed write even while a new leader has not heard the replicas, and of nothing else then', () => {
    const before = statusOf(view([first], both));
    const failure = { state: 'reconciling', reason: 'ReconcileFailed', message: 'forbidden' } as const;
    const next = policyStatus(view([first], undefined, { generation: 2 }), failure, before, NOW);
    assert.equal(told(next, READY), 'False ReconcileFailed: forbidden');
    assert.deepEqual({ ...next, conditions: [] }, { ...before, conditions: [] });
  });

  it('tells of a refusal by the API server', () => {
    const refusal = { state: 'reconciling', reason: REASONS.webhookRefused, message: 'rules: Required value' } as const;
    const status = policyStatus(view([first], both), refusal, undefined, NOW);
    assert.deepEqual([status.phase, status.reason, status.policyStatus], ['Degraded', 'WebhookRefused', 'active']);
    assert.match(told(status, POLICY_UP_TO_DATE), /^False WebhookRefused: .*rules: Required value/);
  });
});
