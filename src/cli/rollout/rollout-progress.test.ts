import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type AdmissionPolicyObject, ANNOTATIONS, type AdmissionPolicyStatus } from '../../resources/index.ts';
import { rolloutProgress } from './rollout-progress.ts';

function policy(
  status: AdmissionPolicyStatus | undefined,
  annotations: Record<string, string> = {},
): AdmissionPolicyObject {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'p', generation: 4, annotations },
    spec: { module: 'builtin:cel', mutating: false, rules: [] },
    ...(status === undefined
      ? {}
      : { status: { observedGeneration: 4, readyReplicas: 2, totalReplicas: 2, ...status } }),
  } as unknown as AdmissionPolicyObject;
}

const progress = (...args: Parameters<typeof policy>): ReturnType<typeof rolloutProgress> =>
  rolloutProgress(policy(...args));

function hintOf(progressed: ReturnType<typeof rolloutProgress>): string {
  return progressed.kind === 'failed' ? progressed.hint : '';
}

describe('rolloutProgress', () => {
  it('is done when the desired revision serves everywhere', () => {
    const text = 'Active: revision 3 serves on 2 of 2 replicas';
    assert.deepEqual(progress({ phase: 'Active', desiredRevision: 3 }), { kind: 'done', text });
    const refreshed = { value: 'now', result: 'Unchanged', message: '' } as const;
    const refreshing = progress({ phase: 'Active', desiredRevision: 3, refreshed }, { [ANNOTATIONS.refresh]: 'now' });
    assert.equal(refreshing.kind, 'done');
    const pinned = progress({ phase: 'RolledBack', desiredRevision: 2 }, { [ANNOTATIONS.pin]: '2' });
    assert.equal(pinned.kind, 'done');
    const request = {
      time: '',
      operation: 'CREATE',
      kind: 'Pod',
      namespace: 'shop',
      name: 'web\u001b[2J',
      user: 'alice',
    };
    const monitored = { revision: 3, since: '2026-01-01T00:00:00Z', count: 12, last: [request], replicas: [] };
    const watching = `${text}; mode monitor: revision 3 would have rejected 12 requests since 2026-01-01T00:00:00Z; the last: CREATE Pod shop/web by alice`;
    assert.deepEqual(progress({ phase: 'Active', desiredRevision: 3, monitored }), { kind: 'done', text: watching });
  });

  it('says what a policy that serves does not do, and fails for what cannot work', () => {
    const active = { phase: 'Active', desiredRevision: 3 } as const;
    const missing = { reason: 'NotServed', severity: 'Warning', message: 'no such group' } as const;
    const wrong = { reason: 'CannotMatch', severity: 'Error', field: 'spec.rules[0]', message: 'no resource' } as const;
    assert.deepEqual(progress({ ...active, issues: [missing] }), {
      kind: 'done',
      text: 'Active: revision 3 serves on 2 of 2 replicas, but NotServed: no such group',
    });
    assert.deepEqual(progress({ ...active, issues: [wrong, missing] }), {
      kind: 'failed',
      text: 'Active: revision 3 serves on 2 of 2 replicas, but CannotMatch: spec.rules[0]: no resource; NotServed: no such group',
      hint: 'Correct the rule.\nInstall the definition of the kind, or correct the rule.',
    });
    const about = { lastTransitionTime: '2026-01-01T00:00:00Z', message: 'being compared' };
    const checking = { ...about, type: 'Ready', status: 'False', reason: 'Checking' } as const;
    assert.deepEqual(progress({ ...active, conditions: [checking] }), { kind: 'waiting', text: 'being compared' });
  });

  it('waits until the controller has seen a change, whatever an older status says', () => {
    const active = { phase: 'Active', desiredRevision: 3 } as const;
    for (const waiting of [
      progress(undefined),
      progress({ ...active, observedGeneration: 3 }),
      progress({ phase: 'Degraded', observedGeneration: 3 }),
      progress(active, { [ANNOTATIONS.rollbackTo]: '2' }),
      progress(active, { [ANNOTATIONS.pin]: '2' }),
      progress(active, { [ANNOTATIONS.refresh]: 'now' }),
      progress({ phase: 'RolledBack', desiredRevision: 2 }),
    ]) {
      assert.ok(waiting.kind === 'waiting' && waiting.isUnseen);
      assert.match(waiting.text, /^the controller has not (?:seen|handled) .* yet$/);
    }
  });

  it('says which revision a pin holds, and which one the spec declares', () => {
    const message = 'revision 2 is pinned and serves on every replica; revision 3, which the spec declares, does not';
    assert.deepEqual(
      progress({ phase: 'RolledBack', desiredRevision: 2, reason: 'Pinned', message }, { [ANNOTATIONS.pin]: '2' }),
      { kind: 'done', text: `RolledBack: ${message}` },
    );
  });

  it('has the command that arms a disarmed policy again, and no other', () => {
    const disarmed = { phase: 'Error', reason: 'Disarmed', message: 'disarmed (incident 7)' } as const;
    assert.deepEqual(progress(disarmed), {
      kind: 'failed',
      text: 'Error: Disarmed: disarmed (incident 7)',
      hint: 'Arm it again: portcullis break-glass rearm clusteradmissionpolicy/p',
    });
  });

  it('has the message of the status while it is under way', () => {
    const updating = { phase: 'Updating', desiredRevision: 5, readyReplicas: 1 } as const;
    assert.deepEqual(progress({ ...updating, reason: 'Staging', message: 'revision 5 is loaded by 1 of 2 replicas' }), {
      kind: 'waiting',
      text: 'Updating: Staging: revision 5 is loaded by 1 of 2 replicas',
    });
  });

  it('has the reason of a failure, and the command for a rollback if a revision serves', () => {
    const failed = { desiredRevision: 5, reason: 'InvalidSettings', message: 'labels: expected a list' } as const;
    const serving = { revision: 4, since: '2026-01-01T00:00:00Z', modules: [] } as const;
    const degraded = progress({ ...failed, phase: 'Degraded', serving });
    assert.equal(degraded.kind, 'failed');
    assert.equal(degraded.text, 'Degraded: InvalidSettings: labels: expected a list');
    assert.equal(
      hintOf(degraded),
      'Correct spec.settings and apply the policy again.\n' +
        'To try it again as it is: portcullis rollout refresh clusteradmissionpolicy/p\n' +
        'To declare again what serves: portcullis rollout undo clusteradmissionpolicy/p',
    );
    assert.equal(
      hintOf(progress({ desiredRevision: 5, phase: 'Error' })),
      'To try it again as it is: portcullis rollout refresh clusteradmissionpolicy/p',
      'without a reason there is no sentence about one',
    );
    const nextRetry = '2026-01-01T00:00:00Z';
    const broken = progress({ ...failed, phase: 'Error', nextRetry });
    assert.equal(hintOf(broken), `Correct spec.settings and apply the policy again.\nThe next try is at ${nextRetry}.`);
    const lastTransitionTime = nextRetry;
    const about = { type: 'Enforced', status: 'True', reason: 'FailurePolicy', lastTransitionTime } as const;
    const rejecting = { ...about, message: 'requests are rejected (failurePolicy Fail)' };
    const lost = progress({ ...failed, phase: 'Error', nextRetry, conditions: [rejecting] });
    assert.match(hintOf(lost), /^To admit requests until then: set failurePolicy: Ignore, which needs no load\.$/m);
    const refused = progress({ ...failed, phase: 'Degraded', serving, reason: 'InvalidParameters' });
    assert.equal(
      hintOf(refused),
      'Correct the parameters of the namespaces that the message names; it is tried again by itself.\n' +
        'To declare again what serves: portcullis rollout undo clusteradmissionpolicy/p',
    );
  });
});
