import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NetworkPolicyStatus, PolicyServerObject } from '../resources/index.ts';
import { explainNetworkPolicy } from './explain-network-policy.ts';
import { explainPolicyServer } from './explain-policy-server.ts';

const AT = '2030-01-02T03:04:05Z';
const ASKED = { program: 'portcullis' };

function server(conditions: readonly object[]): PolicyServerObject {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'PolicyServer',
    metadata: { name: 'one', generation: 1 },
    spec: { image: 'x', replicas: 1 },
    status: { observedGeneration: 1, readyReplicas: 1, conditions },
  } as unknown as PolicyServerObject;
}

describe('explainPolicyServer', () => {
  it('names the condition that is the cause, and what to do', () => {
    const found = explainPolicyServer(
      server([
        { type: 'Ready', status: 'False', reason: 'NameTaken', message: 'Service is taken', lastTransitionTime: AT },
        {
          type: 'ServiceReconciled',
          status: 'False',
          reason: 'NameTaken',
          message: 'Service is taken',
          lastTransitionTime: AT,
        },
      ]),
      'portcullis',
      ASKED,
    );
    assert.deepEqual([found.state, found.since, found.rootCauses?.length], ['NotReady', AT, 1]);
    assert.match(found.toDo.join('\n'), /^Delete or rename the object .*\nLook at its pods: kubectl -n portcullis /);
  });

  it('says Unknown of one that no controller has looked at', () => {
    assert.equal(explainPolicyServer(server([]), 'portcullis', ASKED).state, 'Unknown');
  });
});

describe('explainNetworkPolicy', () => {
  const policy = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'one', namespace: 'shop', generation: 2 },
  };

  it('says Unknown where there is no status, or the user may not read it', () => {
    const absent = explainNetworkPolicy(policy, 'absent', ASKED);
    assert.deepEqual([absent.state, absent.unread], ['Unknown', undefined]);
    const unreadable = explainNetworkPolicy(policy, 'unreadable', ASKED);
    assert.deepEqual(unreadable.unread, ['You may not read NetworkPolicyStatuses in namespace shop.']);
  });

  it('says that a status is about an older spec, and gives the sentence of a policy that is supported', () => {
    const accepted = {
      type: 'Accepted',
      status: 'True',
      reason: 'Accepted',
      message: 'all of it',
      lastTransitionTime: AT,
    };
    const status = {
      apiVersion: 'portcullis.dev/v1',
      kind: 'NetworkPolicyStatus',
      metadata: policy.metadata,
      spec: {},
      status: { observedGeneration: 1, conditions: [accepted] },
    } as NetworkPolicyStatus;
    const { state, because, toDo } = explainNetworkPolicy(policy, status, ASKED);
    assert.deepEqual(
      [state, because, toDo],
      ['Accepted', ['The status is about an older spec of the NetworkPolicy.', 'all of it'], []],
    );
  });

  it('says a warning once, although the message of the policy has it as well', () => {
    const message = 'accepted with a warning: Cilium 1.20.0 does not match IPs of pods';
    const accepted = { type: 'Accepted', status: 'True', reason: 'Accepted', message, lastTransitionTime: AT };
    const warnings = [{ type: 'IPBlockOfPods', message: 'Cilium 1.20.0 does not match IPs of pods' }];
    const status = {
      apiVersion: 'portcullis.dev/v1',
      kind: 'NetworkPolicyStatus',
      metadata: policy.metadata,
      spec: {},
      status: {
        observedGeneration: 2,
        conditions: [accepted],
        providers: [
          { controllerName: 'cilium.io/agent', name: 'cilium', version: '1.20.0', conditions: [accepted], warnings },
        ],
      },
    } as NetworkPolicyStatus;
    const { because } = explainNetworkPolicy(policy, status, ASKED);
    assert.deepEqual(because, ['cilium@1.20.0: Cilium 1.20.0 does not match IPs of pods']);
  });

  it('says nothing that a provider has reported of an older spec', () => {
    const unknown = {
      type: 'Accepted',
      status: 'Unknown',
      reason: 'ReportOutdated',
      message: 'example.com/agent has not reported generation 2 of the policy yet',
      lastTransitionTime: AT,
    };
    const feature = {
      ...unknown,
      type: 'EndPort',
      status: 'False',
      message: 'no ranges',
      observedGeneration: 1,
    };
    const status = {
      apiVersion: 'portcullis.dev/v1',
      kind: 'NetworkPolicyStatus',
      metadata: policy.metadata,
      spec: {},
      status: {
        observedGeneration: 2,
        conditions: [unknown],
        providers: [{ controllerName: 'example.com/agent', features: [feature] }],
      },
    } as NetworkPolicyStatus;
    assert.deepEqual(explainNetworkPolicy(policy, status, ASKED).because, [unknown.message]);
  });
});
