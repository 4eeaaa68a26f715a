import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdmissionPolicyObject, Condition } from '../resources/index.ts';
import { type AdmissionPolicyFacts, explainAdmissionPolicy } from './explain-admission-policy.ts';
import type { Explanation } from './explanation.ts';

const AT = '2030-01-02T03:04:05Z';

const condition = (type: string, status: Condition['status'], reason: string, message = ''): Condition => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: AT,
});

function explained(status: object | undefined, facts: Partial<AdmissionPolicyFacts> = {}): Explanation {
  const policy = {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'one', generation: 2 },
    spec: { module: 'builtin:cel', policyServer: 'default' },
    ...(status === undefined ? {} : { status: { observedGeneration: 2, ...status } }),
  } as unknown as AdmissionPolicyObject;
  return explainAdmissionPolicy(
    { policy, server: {}, revisions: [], productNamespace: 'portcullis', ...facts },
    { program: 'portcullis' },
  );
}

describe('explainAdmissionPolicy', () => {
  it('says Unknown of a policy that no controller has seen, and what is missing', () => {
    const { state, because, toDo } = explained(undefined, { server: 'absent' });
    assert.equal(state, 'Unknown');
    assert.deepEqual(because, [
      'NotSeen: no controller has seen the policy yet, so what it does is not known',
      'PolicyServerNotFound: PolicyServer default does not exist',
    ]);
    assert.match(toDo.join('\n'), /portcullis doctor\nCreate that PolicyServer/);
  });

  it('says what an auditor knows of existing objects, and what would make it know all', () => {
    const audit = {
      state: 'Incomplete',
      message: 'jobs.batch: forbidden',
      observedGeneration: 2,
      counts: { failed: 3 },
      kinds: [{ state: 'Forbidden', missingRule: { apiGroups: ['batch'], resources: ['jobs'], verbs: ['list'] } }],
    };
    const { because, toDo } = explained({ phase: 'Active', reason: 'Serving', audit });
    assert.equal(because.at(-1), 'Existing objects: Incomplete: jobs.batch: forbidden.');
    assert.match(toDo.join('\n'), /portcullis findings --policy one\nTo have jobs\.batch judged: a ClusterRole/);
    const older = explained({ phase: 'Active', reason: 'Serving', audit: { ...audit, observedGeneration: 1 } });
    assert.equal(older.because.at(-1), 'Existing objects: not judged by generation 2 yet.');
    assert.doesNotMatch(explained({ phase: 'Active' }).because.join(), /Existing objects/);
  });

  it('says since when no auditor works, of which generation it may be, and how to judge now', () => {
    const audit = {
      state: 'Unknown',
      message: 'no auditor works (since T)',
      observedGeneration: 1,
      counts: { failed: 3 },
    };
    const { because, toDo } = explained({ phase: 'Active', reason: 'Serving', audit });
    assert.equal(because.at(-1), 'Existing objects: Unknown: no auditor works (since T).');
    assert.match(
      toDo.join('\n'),
      /as far as they were known then: portcullis findings --policy one\n.*portcullis audit --policy one/,
    );
    const never = explained({ phase: 'Active', reason: 'Serving', audit: { state: 'Unknown', message: 'none' } });
    assert.doesNotMatch(never.toDo.join('\n'), /findings/);
  });

  it('says that a status is about an older spec', () => {
    const { because } = explained({ phase: 'Active', reason: 'Serving', observedGeneration: 1 });
    assert.equal(because[0], 'The controller has not seen generation 2 yet: this is about an older spec.');
  });

  it('says that what requests get is Unknown, by the replicas that do not agree', () => {
    const enforced = condition('Enforced', 'Unknown', 'AnswersDiffer', 'revision 1 answers (a); rejected (b)');
    const { because, evidence } = explained({
      phase: 'Degraded',
      reason: 'ReplicaUnreachable',
      message: 'replica b does not answer',
      conditions: [condition('Ready', 'False', 'ReplicaUnreachable'), enforced],
    });
    assert.match(because.join('\n'), /AnswersDiffer since .*: Enforced is Unknown: revision 1 answers \(a\)/);
    assert.deepEqual(evidence, [enforced]);
  });

  it('never says that a policy serves as declared whose condition Enforced is absent', () => {
    assert.deepEqual(explained({ phase: 'Active', reason: 'Serving' }).because, [
      'What requests get is not known: the condition Enforced is absent.',
    ]);
    const conditions = [condition('Ready', 'True', 'Serving'), condition('Enforced', 'True', 'Serving', 'revision 1')];
    assert.deepEqual(explained({ phase: 'Active', reason: 'Serving', conditions }).because, ['It serves as declared.']);
  });

  it('names every issue with its field, and a step for each', () => {
    const { because, toDo, rootCauses } = explained({
      phase: 'Active',
      reason: 'CannotMatch',
      issues: [
        { reason: 'CannotMatch', severity: 'Error', field: 'spec.rules[0]', message: 'no such resource' },
        { reason: 'NotServed', severity: 'Warning', field: 'spec.rules[1]', message: 'no such group' },
      ],
      conditions: [condition('Ready', 'False', 'CannotMatch'), condition('Enforced', 'True', 'Serving', 'revision 1')],
    });
    assert.deepEqual(
      rootCauses?.map(({ reason }) => reason),
      ['CannotMatch', 'NotServed'],
    );
    assert.equal(because[0], 'CannotMatch: spec.rules[0]: no such resource');
    assert.deepEqual(toDo, ['Correct the rule.', 'Install the definition of the kind, or correct the rule.']);
  });

  it('says that a pin holds an older revision, and how to end it', () => {
    const { because, toDo } = explained({
      phase: 'RolledBack',
      reason: 'Pinned',
      message: 'revision 1 is pinned',
      conditions: [condition('Ready', 'True', 'Pinned'), condition('Enforced', 'True', 'Serving', 'revision 1')],
    });
    assert.match(because[0] ?? '', /^Pinned: revision 1 is pinned$/);
    assert.match(toDo[0] ?? '', /end the pin: portcullis rollout unpin clusteradmissionpolicy\/one$/);
  });

  it('keeps a reason of a newer version, and says what it could not read', () => {
    const { because, toDo, unread } = explained(
      { phase: 'Error', reason: 'FromTheFuture', message: 'something new' },
      { revisions: 'unreadable', server: 'unreadable' },
    );
    assert.equal(because[0], 'FromTheFuture: something new');
    assert.match(toDo[0] ?? '', /^FromTheFuture is a reason of a newer version/);
    assert.equal(unread?.length, 2);
  });
});
