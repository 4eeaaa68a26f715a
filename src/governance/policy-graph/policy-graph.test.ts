import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubernetesObject } from '../../resources/index.ts';
import { filePolicies, withinNamespace } from './policy-graph.ts';

const GROUP = 'policy.open-cluster-management.io';

function policy(
  namespace: string,
  name: string,
  ...dependencies: readonly string[]
): KubernetesObject & { readonly spec: object } {
  return {
    apiVersion: `${GROUP}/v1`,
    kind: 'Policy',
    metadata: { name, namespace },
    spec: {
      dependencies: dependencies.map((canonical) => ({
        apiVersion: `${GROUP}/v1`,
        kind: 'Policy',
        name: canonical,
        compliance: 'Compliant',
      })),
      'policy-templates': [
        { objectDefinition: { apiVersion: `${GROUP}/v1`, kind: 'ConfigurationPolicy', metadata: { name } } },
      ],
    },
  };
}

describe('withinNamespace', () => {
  it('keeps the policies of a namespace and what they depend on, in any namespace', () => {
    const all = filePolicies(
      [policy('a', 'one', 'b.two'), policy('b', 'two', 'b.three'), policy('b', 'three'), policy('b', 'four', 'a.one')],
      'local-cluster',
      'default',
    );
    const names = withinNamespace(all, 'a').graph.policies.map(({ namespace, name }) => `${namespace}/${name}`);
    assert.deepEqual(names, ['a/one', 'b/two', 'b/three']);
    assert.deepEqual(withinNamespace(all, 'c').graph.policies, []);
  });
});
