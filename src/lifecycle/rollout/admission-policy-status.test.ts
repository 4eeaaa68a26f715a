import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  findCondition,
  POLICY_ENFORCED,
  type AdmissionPolicyStatus,
  READY,
  RECONCILING,
  STALLED,
  timeText,
} from '../../resources/index.ts';
import {
  PARAMETERS_VALID,
  POLICY_ACTIVE,
  POLICY_UP_TO_DATE,
  admissionPolicyStatus,
} from './admission-policy-status.ts';
import { DEFAULT_ROLLOUT_SETTINGS, REASONS } from '../../rollout/index.ts';
import type { AdmissionRolloutView } from './admission-rollout-view.ts';
import { MODULES, NOW, replica, revision, spec, view } from './testing/rollout-scene.ts';

const MINUTE = 60_000;
const [MODULE] = MODULES;
const first = revision(1, 'Serving');
const both = [replica('a', { 1: 'Serving' }), replica('b', { 1: 'Serving' })];
const IGNORED = { ...DEFAULT_ROLLOUT_SETTINGS, degraded: 'Ignore' } as const;
const FETCH = { state: 'Failed', reason: 'FetchFailed', message: 'no route', nextRetry: NOW + 5_500 } as const;

function statusOf(scene: AdmissionRolloutView, before?: AdmissionPolicyStatus, now = NOW): AdmissionPolicyStatus {
  return admissionPolicyStatus(scene, undefined, before, now);
}

/** A condition in one line. */
function conditionText(status: AdmissionPolicyStatus, type: string): string {
  const { status: value, reason, message } = findCondition(status.conditions, type) ?? {};
  return `${value} ${reason}: ${message}`;
}

describe('the status of a policy', () => {
  it('describes a policy that serves everywhere', () => {
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
      serving: {
        revision: 1,
        since: timeText(NOW),
        modules: [{ ...MODULE, settings: '{"settings":"1"}' }],
      },
      revisions: [
        {
          revision: 1,
          state: 'Serving',
          since: timeText(NOW),
          cause: 'generation 1',
          digests: [MODULE.digest],
          declared: true,
        },
      ],
      conditions: [
        { ...about, type: POLICY_ACTIVE, reason: 'Serving', message: 'revision 1 serves' },
        { ...about, type: POLICY_ENFORCED, reason: 'Serving', message: 'revision 1 answers requests' },
        { ...about, type: POLICY_UP_TO_DATE, reason: 'Serving', message },
        { ...about, type: READY, reason: 'Serving', message },
      ],
    });
  });

  for (const [when, scene, upstream, mode, desired, serving, ready] of [
    [
      'the server is unknown',
      view([revision(1, 'Candidate')], [], { hasPolicyServer: false }),
      'scheduled',
      'unknown',
      1,
      0,
      0,
    ],
    ['the server exists', view([revision(1, 'Candidate')], []), 'pending', 'unknown', 1, 0, 0],
    ['replicas load it', view([revision(1, 'Validated')], [replica('a')]), 'pending', 'unknown', 1, 0, 0],
    ['it serves and is not covered', view([first], both, { isCovered: false }), 'pending', 'unknown', 1, 1, 2],
    [
      'one replica serves it',
      view([first], [replica('a', { 1: 'Serving' }), replica('b', { 1: FETCH })]),
      'active',
      'protect',
      1,
      1,
      1,
    ],
    ['no replica can load it', view([first], [replica('a', { 1: FETCH })]), 'pending', 'unknown', 1, 0, 0],
    ['the last replica is removed', view([first], []), 'pending', 'unknown', 1, 0, 0],
    ['no replica is connected', view([first], [replica('a', {}, 'lost')]), 'active', 'protect', 1, 1, 0],
    [
      'the newest failed',
      view([first, revision(2, 'Failed', { reason: 'InvalidSettings' })], both),
      'active',
      'protect',
      2,
      1,
      0,
    ],
    ['the pinned revision does not exist', view([first], both, { pin: 9 }), 'active', 'protect', 9, 1, 0],
    [
      'the serving revision is in monitor mode',
      view([revision(1, 'Serving', { snapshot: spec('1', { mode: 'monitor' }) })], both),
      'active',
      'monitor',
      1,
      1,
      2,
    ],
  ] as const) {
    it(`has Kubewarden's fields and the revisions when ${when}`, () => {
      const status = statusOf(scene);
      assert.deepEqual(
        [status.policyStatus, status.mode, status.desiredRevision, status.servingRevision, status.readyReplicas],
        [upstream, mode, desired, serving, ready],
      );
    });
  }

  it('names the revision that answers during an update, and after its failure', () => {
    const loading = statusOf(view([first, revision(2, 'Validated')], both));
    assert.equal(conditionText(loading, POLICY_ACTIVE), 'True Serving: revision 1 serves');
    assert.equal(conditionText(loading, POLICY_UP_TO_DATE), 'False Staging: revision 2 is loaded by 0 of 2 replicas');
    const failed = revision(2, 'Failed', { reason: 'InvalidSettings', message: 'expected a list' });
    const degraded = statusOf(view([first, failed], both));
    assert.equal(conditionText(degraded, POLICY_ACTIVE), 'True Serving: revision 1 serves');
    assert.match(conditionText(degraded, POLICY_UP_TO_DATE), /^False InvalidSettings: revision 2 failed/);
  });

  it('says why requests are not answered, or that it is unknown', () => {
    const failing = statusOf(view([first], [replica('a', { 1: FETCH })]));
    assert.match(
      conditionText(failing, POLICY_ACTIVE),
      /^False FetchFailed: revision 1 is not on 1 of 1 replicas: a: no route/,
    );
    const lost = statusOf(view([first], [replica('a', {}, 'lost')]));
    assert.match(conditionText(lost, POLICY_ACTIVE), /^Unknown ReplicaUnreachable: revision 1 served at/);
  });

  it('is up to date when a pin holds an older revision, which is the desired one', () => {
    const status = statusOf(view([first, revision(2, 'Failed')], both, { pin: 1 }));
    assert.equal(status.phase, 'RolledBack');
    assert.match(conditionText(status, POLICY_UP_TO_DATE), /^True Pinned: /);
  });

  it('has the next retry, of the controller or of the first replica', () => {
    const candidate = revision(1, 'Candidate', { reason: 'FetchFailed', nextRetry: NOW + 2_000 });
    assert.equal(statusOf(view([candidate], [replica('a')])).nextRetry, '2026-01-01T00:00:02Z');
    const replicas = [replica('a', { 1: { ...FETCH, nextRetry: NOW + 9_000 } }), replica('b', { 1: FETCH })];
    assert.equal(statusOf(view([first], replicas)).nextRetry, '2026-01-01T00:00:05Z');
    assert.equal('nextRetry' in statusOf(view([first], both)), false);
  });

  it('does not change before the replicas report to a new leader', () => {
    const before = statusOf(view([first], both));
    const next = statusOf(view([first, revision(2, 'Validated')], undefined, { generation: 2 }), before, NOW + MINUTE);
    assert.equal(next, before);
  });

  it('of a new policy is Pending before the replicas report', () => {
    const { phase, reason, policyStatus: upstream } = statusOf(view([revision(1, 'Candidate')], undefined));
    assert.deepEqual([phase, reason, upstream], ['Pending', REASONS.controllerStarting, 'pending']);
    // A policy that was applied with the status of another tool.
    const other = statusOf(view([revision(1, 'Candidate')], undefined), { policyStatus: 'active' });
    assert.equal(other.phase, 'Pending');
  });

  it('does not change without a cause, and unchanged conditions keep their transition times', () => {
    const before = statusOf(view([first], both));
    assert.deepEqual(statusOf(view([first], both), before, NOW + MINUTE), before);
    const after = statusOf(view([first, revision(2, 'Validated')], both), before, NOW + MINUTE);
    assert.equal(findCondition(after.conditions, POLICY_ACTIVE)?.lastTransitionTime, '2026-01-01T00:00:00Z');
    assert.equal(findCondition(after.conditions, POLICY_UP_TO_DATE)?.lastTransitionTime, '2026-01-01T00:01:00Z');
  });

  it('says whether the policy is enforced, and by what', () => {
    const enforced = (scene: AdmissionRolloutView): string => conditionText(statusOf(scene), POLICY_ENFORCED);
    const failed = revision(1, 'Failed', { reason: 'InvalidSettings' });
    const retired = revision(1, 'Retired');
    const later = revision(2, 'Failed', { reason: 'InvalidSettings' });
    const covered = { isCovered: true };
    const uncovered = { isCovered: false };
    assert.equal(enforced(view([first], both, covered)), 'True Serving: revision 1 answers requests');
    assert.equal(
      enforced(view([failed], [replica('a')], uncovered)),
      'False NotServedYet: no revision has served so far: requests are admitted without the policy',
    );
    assert.equal(
      enforced(view([retired, later], [replica('a')], covered)),
      'True FailurePolicy: requests are rejected (failurePolicy Fail)',
    );
    assert.equal(
      enforced(view([retired, later], [replica('a')], { ...uncovered, settings: IGNORED })),
      'False DegradedIgnored: API servers do not send requests to the policy',
    );
  });

  it('keeps conditions of other controllers', () => {
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
      [POLICY_ACTIVE, POLICY_ENFORCED, POLICY_UP_TO_DATE, READY],
    );
  });

  it('has the conditions of kstatus: Ready, Reconciling or Stalled', () => {
    const abnormal = (status: AdmissionPolicyStatus): string[] =>
      [READY, RECONCILING, STALLED].map((type) => conditionText(status, type).split(':')[0] ?? '');
    const none = 'undefined undefined';
    assert.deepEqual(abnormal(statusOf(view([first], both))), ['True Serving', none, none]);
    const loading = statusOf(view([first, revision(2, 'Validated')], both));
    assert.deepEqual(abnormal(loading), ['False Staging', 'True Staging', none]);
    const failed = revision(2, 'Failed', { reason: 'InvalidSettings', message: 'expected a list' });
    const stalled = statusOf(view([first, failed], both), loading);
    assert.deepEqual(abnormal(stalled), ['False InvalidSettings', none, 'True InvalidSettings']);
    assert.deepEqual(abnormal(statusOf(view([first], both), stalled)), ['True Serving', none, none]);
  });

  it('says which namespaces have invalid parameters, while a revision with parameters serves', () => {
    const parameters = { from: { namespace: { labels: ['tier'] } }, overridable: ['a'], settingsExpression: '{}' };
    const tenants = revision(1, 'Serving', { snapshot: spec('1', { parameters }) });
    const refused = { count: 2, tried: 9, first: [{ namespace: 'a', message: 'no a' }] };
    const some = [replica('a', { 1: 'Serving' }), replica('b', { 1: { state: 'Serving', refused } })];
    const untried = statusOf(view([tenants], both));
    const unknown = 'Unknown NotTried: no replica has tried the parameters with revision 1 yet';
    assert.equal(conditionText(untried, PARAMETERS_VALID), unknown);
    const tried = replica('a', { 1: { state: 'Serving', areParametersTried: true } });
    const valid = statusOf(view([tenants], [tried]));
    assert.equal(conditionText(valid, PARAMETERS_VALID), 'True Valid: no invalid parameters are known');
    const invalid = statusOf(view([tenants], some), valid);
    const text = '2 of 9 namespaces would be refused for their parameters: a and 1 more (no a)';
    assert.equal(conditionText(invalid, PARAMETERS_VALID), `False InvalidParameters: ${text}`);
    assert.deepEqual([invalid.phase, invalid.message], ['Active', `revision 1 serves on every replica, but ${text}`]);
    assert.equal(findCondition(statusOf(view([first], both), invalid).conditions, PARAMETERS_VALID), undefined);
  });

  it('reports a failed write even before the replicas report to a new leader, and nothing else', () => {
    const before = statusOf(view([first], both));
    const failure = { state: 'reconciling', reason: 'ReconcileFailed', message: 'forbidden' } as const;
    const next = admissionPolicyStatus(view([first], undefined, { generation: 2 }), failure, before, NOW);
    assert.equal(conditionText(next, READY), 'False ReconcileFailed: forbidden');
    assert.deepEqual({ ...next, conditions: [] }, { ...before, conditions: [] });
  });

  it('reports a webhook configuration that the API server rejects', () => {
    const refusal = { state: 'reconciling', reason: REASONS.webhookRefused, message: 'rules: Required value' } as const;
    const status = admissionPolicyStatus(view([first], both), refusal, undefined, NOW);
    assert.deepEqual([status.phase, status.reason, status.policyStatus], ['Degraded', 'WebhookRefused', 'active']);
    assert.match(conditionText(status, POLICY_UP_TO_DATE), /^False WebhookRefused: .*rules: Required value/);
  });
});
