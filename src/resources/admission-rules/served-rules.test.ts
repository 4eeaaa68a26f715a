import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { kindName, matchedKinds, type ResourceRule, type ServedResource, unservedRules } from './served-rules.ts';

function served(group: string, version: string, kind: string, more: Partial<ServedResource> = {}): ServedResource {
  const singular = kind.toLowerCase();
  return {
    group,
    version,
    kind,
    resource: `${singular}s`,
    singular,
    namespaced: true,
    shortNames: [],
    subresources: [],
    ...more,
  };
}

const SERVED: readonly ServedResource[] = [
  served('', 'v1', 'Pod', { shortNames: ['po'], subresources: ['log', 'status'] }),
  served('', 'v1', 'Node', { namespaced: false }),
  served('apps', 'v1', 'Deployment', { shortNames: ['deploy'], subresources: ['scale', 'status'] }),
  served('networking.k8s.io', 'v1', 'Ingress', { resource: 'ingresses' }),
  served('autoscaling', 'v2', 'HorizontalPodAutoscaler', { shortNames: ['hpa'] }),
  served('autoscaling', 'v1', 'HorizontalPodAutoscaler', { shortNames: ['hpa'] }),
];

function rule(group: string, resources: string, more: Partial<ResourceRule> = {}): ResourceRule {
  return { apiGroups: group.split(' '), apiVersions: ['v1'], resources: resources.split(' '), ...more };
}

describe('rules that match no resource of the cluster', () => {
  const cases: readonly (readonly [rule: ResourceRule, field: string, message: string])[] = [
    [
      rule('apps', 'deployment'),
      'resources[0]',
      'the cluster serves no resource "deployment" in apiGroups "apps". Did you mean deployments?',
    ],
    [
      rule('apps', 'deploy'),
      'resources[0]',
      'the cluster serves no resource "deploy" in apiGroups "apps". Did you mean deployments?',
    ],
    [
      rule('', 'pods deployments'),
      'resources[1]',
      'the cluster serves no resource "deployments" in apiGroups "": deployments are in "apps"',
    ],
    [rule('', 'podz'), 'resources[0]', 'the cluster serves no resource "podz" in apiGroups "". Did you mean pods?'],
    [rule('', 'zebras'), 'resources[0]', 'the cluster serves no resource "zebras" in apiGroups ""'],
    [rule('app', 'deployments'), 'apiGroups', 'the cluster serves no API group "app": deployments are in "apps"'],
    [rule('app', '*'), 'apiGroups', 'the cluster serves no API group "app". Did you mean "apps"?'],
    [
      rule('networking.k8s.oi', 'ingress'),
      'apiGroups',
      'the cluster serves no API group "networking.k8s.oi". Did you mean "networking.k8s.io"?',
    ],
    [rule('example.com', 'widgets'), 'apiGroups', 'the cluster serves no API group "example.com"'],
    [
      rule('apps', 'deployments', { apiVersions: ['v2'] }),
      'apiVersions',
      'the cluster does not serve deployments in version "v2": it serves "v1"',
    ],
    [
      rule('autoscaling', 'horizontalpodautoscalers', { apiVersions: ['v3'] }),
      'apiVersions',
      'the cluster does not serve horizontalpodautoscalers in version "v3": it serves "v2", "v1"',
    ],
    [
      rule('', 'nodes', { scope: 'Namespaced' }),
      'scope',
      'no resource of the rule has the scope Namespaced: "nodes" has the scope Cluster',
    ],
    [rule('', 'pods/logs'), 'resources[0]', 'the cluster serves no subresource "pods/logs". Did you mean pods/log?'],
  ];
  for (const [wrong, field, message] of cases) {
    it(`are told by ${field}: ${message}`, () =>
      assert.deepEqual(unservedRules([wrong], SERVED), [{ field: `spec.rules[0].${field}`, message }]));
  }

  const right: readonly ResourceRule[] = [
    rule('', 'pods nodes pods/log pods/status pods/*'),
    rule('', 'pods/exec pods/ephemeralcontainers pods/resize'),
    rule('*', '*'),
    rule('*', 'deployments */scale'),
    rule('apps extensions', 'deployments'),
    rule('apps', 'deployments', { apiVersions: ['v1beta1', 'v1'] }),
    rule('apps', 'deployments', { apiVersions: ['*'] }),
    rule('apps', 'deployments', { scope: 'Namespaced' }),
    rule('', '*', { scope: 'Cluster' }),
    // Incomplete rules, which are reported elsewhere.
    { apiVersions: ['v1'], resources: ['pods'] },
    rule('', 'pods', { apiVersions: [] }),
  ];
  for (const one of right) {
    it(`are not ${JSON.stringify(one)}`, () => assert.deepEqual(unservedRules([one], SERVED), []));
  }

  it('have one problem for each field', () => {
    const problems = unservedRules([rule('example.com', 'widgets gadgets'), rule('', 'pod po')], SERVED);
    assert.deepEqual(
      problems.map(({ field }) => field),
      ['spec.rules[0].apiGroups', 'spec.rules[1].resources[0]', 'spec.rules[1].resources[1]'],
    );
  });
});

describe('kinds that rules match', () => {
  const kindsOf = (rules: readonly ResourceRule[], limit = 10): readonly [string, boolean] => {
    const { kinds, isPartial } = matchedKinds(rules, SERVED, limit);
    return [kinds.map(kindName).join(', '), isPartial];
  };

  it('are named by their resources, in order', () => {
    assert.deepEqual(kindsOf([rule('apps', 'deployments'), rule('', 'pods pods/status')]), [
      'apps/v1 Deployment, v1 Pod',
      false,
    ]);
  });

  it('include every version that is served', () => {
    const all = rule('*', 'horizontalpodautoscalers', { apiVersions: ['*'] });
    assert.deepEqual(kindsOf([all]), [
      'autoscaling/v1 HorizontalPodAutoscaler, autoscaling/v2 HorizontalPodAutoscaler',
      false,
    ]);
  });

  it('are not all with a wildcard, another kind of subresource, or more kinds than asked for', () => {
    assert.deepEqual(kindsOf([rule('', '*'), rule('', 'pods')]), ['v1 Pod', true]);
    assert.deepEqual(kindsOf([rule('', 'pods pods/exec')]), ['v1 Pod', true]);
    assert.deepEqual(kindsOf([rule('', 'pods nodes')], 1), ['v1 Node', true]);
  });

  it('are those of the scope', () => {
    assert.deepEqual(kindsOf([rule('', 'pods nodes', { scope: 'Cluster' })]), ['v1 Node', false]);
  });
});
