import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../../resources/index.ts';
import { triedPolicies } from './tried-policies.ts';

const API_VERSION = 'policy.open-cluster-management.io/v1';

function tried(manifest: object): unknown {
  return triedPolicies([manifest as KubernetesObject], 'local-cluster').policies[0];
}

describe('the policies of a dry run', () => {
  it('inform and are evaluated at once, in the namespace of the cluster', () => {
    const spec = {
      remediationAction: 'enforce',
      evaluationInterval: { compliant: 'never' },
      pruneObjectBehavior: 'DeleteAll',
      severity: 'low',
    };
    const metadata = { name: 'a', namespace: 'managed', uid: '1', finalizers: ['x'] };
    assert.deepEqual(tried({ apiVersion: API_VERSION, kind: 'ConfigurationPolicy', metadata, spec }), {
      apiVersion: API_VERSION,
      kind: 'ConfigurationPolicy',
      metadata: { name: 'a', namespace: 'local-cluster', labels: {}, annotations: {} },
      spec: { remediationAction: 'inform', severity: 'low' },
    });
  });

  it('are enabled with all of their templates', () => {
    const template = (kind: string) => ({ objectDefinition: { kind, spec: { remediationAction: 'enforce' } } });
    const spec = {
      disabled: true,
      'policy-templates': [template('ConfigurationPolicy'), template('OperatorPolicy'), 7],
    };
    const policy = tried({ apiVersion: API_VERSION, kind: 'Policy', metadata: { name: 'a', namespace: 'x' }, spec });
    assert.deepEqual((policy as { spec: object }).spec, {
      disabled: false,
      remediationAction: 'inform',
      'policy-templates': [
        { objectDefinition: { kind: 'ConfigurationPolicy', spec: { remediationAction: 'inform' } } },
        template('OperatorPolicy'),
        7,
      ],
    });
  });

  it('are those that copies were made from', () => {
    const copy = {
      apiVersion: API_VERSION,
      kind: 'Policy',
      metadata: { name: 'shop.web', namespace: 'local-cluster' },
      spec: {},
    };
    const { namespace, name } = (tried(copy) as KubernetesObject).metadata;
    assert.deepEqual([namespace, name], ['shop', 'web']);
  });

  it('keep a spec that is none, which their schema refuses', () => {
    assert.deepEqual(
      (tried({ apiVersion: API_VERSION, kind: 'Policy', metadata: { name: 'a' }, spec: 3 }) as { spec: unknown }).spec,
      3,
    );
  });

  it('are told apart from other objects', () => {
    const other = { apiVersion: 'v1', kind: 'Policy', metadata: { name: 'a' } };
    assert.deepEqual(triedPolicies([other], 'local-cluster'), { policies: [], ignored: [other] });
  });
});
