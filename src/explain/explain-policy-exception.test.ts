import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { exceptedPolicyId, type KubernetesObject, type PolicyException } from '../resources/index.ts';
import { explainPolicyException, type PolicyExceptionFacts } from './explain-policy-exception.ts';
import type { Explanation } from './explanation.ts';

const AT = '2030-01-02T03:04:05Z';
const END = '2030-03-01T00:00:00Z';
const POLICY = 'ClusterAdmissionPolicy pinned-images';
const POLICY_ID = exceptedPolicyId({ kind: 'ClusterAdmissionPolicy', name: 'pinned-images' }, 'shop');
const QUESTION = 'kubectl auth can-i exempt clusteradmissionpolicies.policies.kubewarden.io/pinned-images';

const exceptedPolicy = (uid: string): KubernetesObject => ({
  apiVersion: 'policies.kubewarden.io/v1',
  kind: 'ClusterAdmissionPolicy',
  metadata: { name: 'pinned-images', uid },
});

function statusOf(state: string, reason = state, message = `it ends at ${END}`): object {
  const isInForce = ['Active', 'Unused', 'ExpiringSoon'].includes(state);
  const accepted = {
    uid: 'u',
    generation: 2,
    policies: [{ kind: 'ClusterAdmissionPolicy', name: 'pinned-images', uid: 'p' }],
  };
  const ready = { type: 'Ready', status: isInForce ? 'True' : 'False', reason, message, lastTransitionTime: AT };
  return { observedGeneration: 2, state, ...(isInForce ? { accepted } : {}), conditions: [ready] };
}

function exceptionWith(status: object | undefined, spec: object = {}, metadata: object = {}): PolicyException {
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyException',
    metadata: { name: 'importer', namespace: 'shop', uid: 'u', generation: 2, ...metadata },
    spec: {
      policies: [{ kind: 'ClusterAdmissionPolicy', name: 'pinned-images' }],
      objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], labelSelector: { matchLabels: { app: 'importer' } } },
      reason: 'the vendor is slow',
      expiresAt: END,
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  } as unknown as PolicyException;
}

function explained(exception: PolicyException, facts: Partial<PolicyExceptionFacts> = {}): Explanation {
  const policies = new Map([[POLICY_ID, exceptedPolicy('p')]]);
  return explainPolicyException(
    { exception, policies, now: Date.parse('2030-01-10T00:00:00Z'), ...facts },
    { program: 'portcullis' },
  );
}

describe('explainPolicyException', () => {
  it('says of one in force what it excepts, from what, why, and until when', () => {
    const { object, state, ready, since, because, rootCauses, toDo } = explained(
      exceptionWith(statusOf('Active'), { ticket: 'OPS-1', owner: 'team-shop' }),
    );
    assert.deepEqual([object, state, ready, since], ['policyexception/importer -n shop', 'Active', 'True', AT]);
    assert.deepEqual(because, [
      `Active: it ends at ${END}`,
      `It excepts Pod of namespace shop, with the labels app=importer, from ${POLICY}.`,
      'How many existing objects it lets through is Unknown: no auditor has said it.',
      'Its author says why: the vendor is slow (ticket OPS-1, owner team-shop)',
    ]);
    assert.equal(rootCauses, undefined);
    assert.match(toDo.join('\n'), /^To see the existing objects .*: portcullis findings -n shop --result skip$/);
  });

  it('says how often it was used, or since when not', () => {
    const used = { ...statusOf('Active'), used: 12, lastUsed: AT };
    assert.equal(explained(exceptionWith(used)).because[2], `12 requests have used it, the last one at ${AT}.`);
    const message = `no request has used it yet; it counts as unused from ${END} on`;
    const { conditions } = statusOf('Active') as { readonly conditions: readonly object[] };
    const use = { type: 'Used', status: 'Unknown', reason: 'NotUsedYet', message, lastTransitionTime: AT };
    const unused = { ...statusOf('Active'), conditions: [...conditions, use] };
    assert.equal(explained(exceptionWith(unused)).because[2], `NotUsedYet: ${message}`);
  });

  it('says how many existing objects it is for, and why not all are known', () => {
    const textOf = (matched: object): string => {
      const text = explained(exceptionWith({ ...statusOf('Active'), matched })).because.find((one) =>
        /existing/i.test(one),
      );
      return text ?? assert.fail();
    };
    assert.equal(textOf({ summary: '3', count: 3 }), 'Existing objects that it lets through: 3.');
    assert.equal(
      textOf({ summary: 'Unknown', count: 0, message: 'pods: forbidden' }),
      'Existing objects that it lets through: Unknown, because not all are judged: pods: forbidden',
    );
  });

  it('says all that has to hold at once', () => {
    const { because } = explained(
      exceptionWith(statusOf('Active'), {
        policies: [{ kind: 'AdmissionPolicyGroup', name: 'g', members: ['a', 'b'] }],
        objects: {
          kinds: [
            { apiGroup: 'apps', kind: 'Deployment' },
            { apiGroup: '', kind: 'Pod' },
          ],
          names: ['web-*', 'one'],
          labelSelector: { matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }] },
        },
        matchConditions: [{ name: 'dry', expression: 'true' }],
      }),
    );
    assert.ok(
      because.includes(
        'It excepts Deployment.apps or Pod of namespace shop, named web-* or one, with the labels tier In (a, b), under the conditions dry, from AdmissionPolicyGroup g (members a, b).',
      ),
      because.join('\n'),
    );
  });

  it('says that it excepts nothing before the controller has accepted it as it is now', () => {
    const older = { ...statusOf('Active'), observedGeneration: 1 };
    for (const exception of [
      exceptionWith(undefined),
      exceptionWith(older),
      exceptionWith(statusOf('Active'), {}, { uid: 'copy' }),
    ]) {
      const { state, ready, because, toDo } = explained(exception);
      assert.deepEqual([state, ready], ['Pending', undefined]);
      assert.deepEqual(because.slice(0, 2), [
        'NotAccepted: the controller has not seen generation 2 yet: it excepts nothing until then',
        `In force it would except Pod of namespace shop, with the labels app=importer, from ${POLICY}, until ${END}.`,
      ]);
      assert.deepEqual(toDo, ['To find out why no controller has accepted it: portcullis doctor']);
    }
  });

  for (const [state, reason, step, isRightNeeded] of [
    ['Pending', 'PolicyNotFound', /^Create the policy that the message names/, true],
    ['Pending', 'GuardNotFound', /^Have an administrator install Portcullis again: portcullis install$/, false],
    ['Refused', 'CreatedUnguarded', /^Delete it, and create it again\./, true],
    ['Refused', 'Invalid', /^Correct the fields that the message names\./, true],
    ['Orphaned', 'PolicyReplaced', /^To except from the policy that is there now, change the spec/, true],
    [
      'Unused',
      'Unused',
      /^If nothing needs it any more, delete it: portcullis delete policyexception\/importer -n shop$/,
      false,
    ],
    ['ExpiringSoon', 'ExpiringSoon', /^If it is still needed then, set a later spec\.expiresAt/, true],
  ] as const) {
    it(`says what to do about ${reason}, and who may`, () => {
      const { because, rootCauses, toDo } = explained(exceptionWith(statusOf(state, reason, 'what is wrong')));
      assert.equal(because[0], `${reason}: what is wrong`);
      assert.deepEqual(rootCauses, [{ reason, message: 'what is wrong', since: AT }]);
      assert.match(toDo[0] ?? '', step);
      assert.equal(toDo.join('\n').includes(QUESTION), isRightNeeded);
      assert.equal(toDo.join('\n').includes('portcullis-policy-exempter'), isRightNeeded);
    });
  }

  it('goes by the clock where no controller has written that it is over', () => {
    const { state, ready, since, because, toDo } = explained(exceptionWith(statusOf('Active')), {
      now: Date.parse(END),
    });
    assert.deepEqual([state, ready, since], ['Expired', undefined, END]);
    assert.equal(because[0], `Expired: it ended at ${END}`);
    assert.match(toDo[0] ?? '', /Else delete it: portcullis delete policyexception\/importer -n shop$/);
    assert.doesNotMatch(toDo.join('\n'), /findings/);
  });

  it('sees that a policy is another one before the controller does', () => {
    for (const read of ['absent', exceptedPolicy('another')] as const) {
      const { state, because, toDo } = explained(exceptionWith(statusOf('Active')), {
        policies: new Map([[POLICY_ID, read]]),
      });
      assert.equal(state, 'Orphaned');
      assert.equal(
        because[0],
        `PolicyReplaced: It excepts nothing from ${POLICY}, which was deleted, or is another one now.`,
      );
      assert.match(toDo[0] ?? '', /^To except from the policy that is there now/);
    }
  });

  it('says once which one of its policies it excepts nothing from any more', () => {
    const other = { kind: 'ClusterAdmissionPolicy', name: 'other' };
    const spec = { policies: [{ kind: 'ClusterAdmissionPolicy', name: 'pinned-images' }, other] };
    for (const message of [`it ends at ${END}`, `it ends at ${END}; ${POLICY} was deleted, or is another one now`]) {
      const { state, because, rootCauses, toDo } = explained(
        exceptionWith(statusOf('Active', 'Active', message), spec),
        { policies: new Map([[POLICY_ID, 'absent']]) },
      );
      assert.equal(state, 'Active');
      assert.equal(because.filter((text) => /deleted/.test(text)).length, 1, because.join('\n'));
      assert.deepEqual(
        rootCauses?.map(({ reason }) => reason),
        ['PolicyReplaced'],
      );
      assert.match(toDo[0] ?? '', /^To except from the policy that is there now/);
    }
  });

  it('takes a policy that may not be read for the one that was accepted, and says that it is not known', () => {
    const { state, unread } = explained(exceptionWith(statusOf('Active')), {
      policies: new Map([[POLICY_ID, 'unreadable']]),
    });
    assert.equal(state, 'Active');
    assert.deepEqual(unread, [`You may not read ${POLICY}: whether it is there, and still the same one, is Unknown.`]);
  });

  it('says of one that is being deleted that it excepts nothing', () => {
    const { state, since, because } = explained(exceptionWith(statusOf('Active'), {}, { deletionTimestamp: AT }));
    assert.deepEqual([state, since], ['Deleting', AT]);
    assert.match(because[0] ?? '', /excepts nothing/);
  });
});
