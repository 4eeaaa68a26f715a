import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { findCondition, type AdmissionPolicyStatus, READY, STALLED } from '../../resources/index.ts';
import type { TypeCheckReport } from '../type-checks/type-check-report.ts';
import { newIssues } from './policy-issues.ts';
import { admissionPolicyStatus } from './admission-policy-status.ts';
import type { AdmissionRolloutView } from './admission-rollout-view.ts';
import { NOW, replica, revision, view } from './testing/rollout-scene.ts';

const first = revision(1, 'Serving');
const both = [replica('a', { 1: 'Serving' }), replica('b', { 1: 'Serving' })];
const GOOD: TypeCheckReport = { unserved: [], warnings: [], expressions: 1, kinds: ['v1 Pod'] };
const RULE = { field: 'spec.rules[0].resources[0]', message: 'no resource "pod"' };
const FIELD = { field: 'spec.settings.validations[0].expression', message: "undefined field 'x'" };

function statusOf(rest: Partial<AdmissionRolloutView>, before?: AdmissionPolicyStatus): AdmissionPolicyStatus {
  return admissionPolicyStatus(view([first], both, rest), undefined, before, NOW);
}

function readiness({ conditions }: AdmissionPolicyStatus): string {
  const { status, reason } = findCondition(conditions, READY) ?? {};
  return `${status} ${reason}${findCondition(conditions, STALLED) === undefined ? '' : ', stalled'}`;
}

function textsOf({ issues = [] }: AdmissionPolicyStatus): readonly string[] {
  return issues.map(({ severity, reason, field = '', message }) => `${severity} ${reason} ${field}: ${message}`);
}

describe('issues of a policy that serves', () => {
  it('are none, where it does what it says', () => {
    const status = statusOf({ typeCheck: GOOD });
    assert.deepEqual([status.issues, status.message], [undefined, 'revision 1 serves on every replica']);
  });

  it('are warnings, where a kind may be installed later, or an expression may succeed', () => {
    const status = statusOf({ typeCheck: { ...GOOD, unserved: [RULE], warnings: [FIELD] } });
    assert.deepEqual(textsOf(status), [
      `Warning NotServed ${RULE.field}: ${RULE.message}`,
      `Warning TypeWarnings ${FIELD.field}: ${FIELD.message}`,
    ]);
    assert.equal(readiness(status), 'True NotServed');
    assert.deepEqual([status.phase, status.reason], ['Active', 'NotServed']);
    assert.equal(
      status.message,
      `revision 1 serves on every replica, but ${RULE.field}: ${RULE.message}; ${FIELD.field}: ${FIELD.message}`,
    );
  });

  it('stop it from being ready, where it cannot match or succeed, before all others', () => {
    const wrong = { ...GOOD, unserved: [RULE], warnings: [{ ...FIELD, isCertain: true as const }] };
    const status = statusOf({ typeCheck: wrong });
    assert.deepEqual(textsOf(status), [
      `Error CannotSucceed ${FIELD.field}: ${FIELD.message}: it succeeds for no object`,
      `Warning NotServed ${RULE.field}: ${RULE.message}`,
    ]);
    assert.equal(readiness(status), 'False CannotSucceed, stalled');
    assert.deepEqual([status.phase, status.reason], ['Active', 'CannotSucceed']);
    const never = statusOf({ typeCheck: { ...GOOD, unserved: [{ ...RULE, isCertain: true }] } });
    assert.equal(readiness(never), 'False CannotMatch, stalled');
  });

  it('include modules that may reject, and annotations that are ignored', () => {
    const warned = revision(1, 'Serving', { warnings: ['it changes objects'] });
    const invalidAnnotations = [{ annotation: 'portcullis.dev/pin', message: 'expected a number' }];
    const status = admissionPolicyStatus(view([warned], both, { invalidAnnotations }), undefined, undefined, NOW);
    assert.deepEqual(textsOf(status), [
      'Warning MayReject : it may reject requests: it changes objects',
      'Warning InvalidAnnotation metadata.annotations[portcullis.dev/pin]: expected a number',
    ]);
    assert.deepEqual(
      newIssues(undefined, status).map(({ reason }) => reason),
      ['MayReject'],
    );
    assert.deepEqual(newIssues(status, status), []);
  });

  it('stay until the same spec has been checked again, and not for another one', () => {
    const before = statusOf({ typeCheck: { ...GOOD, unserved: [RULE] } });
    const pending = { typeCheck: undefined, isTypeCheckPending: true };
    assert.deepEqual(statusOf(pending, before).issues, before.issues);
    assert.equal(readiness(statusOf(pending, before)), 'True NotServed');
    assert.deepEqual(statusOf({ typeCheck: { ...GOOD, skipped: 'no answer' } }, before).issues, before.issues);
    const changed = statusOf({ ...pending, generation: 2 }, before);
    assert.deepEqual([changed.issues, readiness(changed)], [undefined, 'False Checking']);
  });

  it('are named up to a number, and listed up to another one', () => {
    const unserved = Array.from({ length: 30 }, (_, index) => ({ field: `f${index}`, message: 'x'.repeat(9_000) }));
    const { issues = [], message = '' } = statusOf({ typeCheck: { ...GOOD, unserved } });
    assert.equal(issues.length, 20);
    assert.ok(JSON.stringify(issues).length < 20_000 && message.endsWith('; 17 more in status.issues'));
  });

  it('of a policy that is being rolled out do not hide its progress', () => {
    const next = revision(2, 'Validated');
    const status = admissionPolicyStatus(
      view([first, next], both, { typeCheck: { ...GOOD, unserved: [{ ...RULE, isCertain: true }] } }),
      undefined,
      undefined,
      NOW,
    );
    assert.equal(status.reason, 'Staging');
    assert.match(status.message ?? '', /^revision 2 is loaded by 0 of 2 replicas; spec\.rules\[0\]/);
  });
});
