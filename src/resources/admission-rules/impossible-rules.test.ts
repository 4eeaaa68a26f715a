import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { impossibleRules, type RequestRule } from './impossible-rules.ts';

function rule(group: string, resources: string, more: Partial<RequestRule> = {}): RequestRule {
  return {
    apiGroups: group.split(' '),
    apiVersions: ['v1'],
    operations: ['CREATE', 'UPDATE'],
    resources: resources.split(' '),
    ...more,
  };
}

describe('rules that match no request in any cluster', () => {
  const cases: readonly (readonly [rule: RequestRule, field: string, message: string])[] = [
    [rule('', 'pod'), 'resources[0]', 'Kubernetes has no resource "pod" in apiGroups "". Did you mean pods?'],
    [rule('', 'po'), 'resources[0]', 'Kubernetes has no resource "po" in apiGroups "". Did you mean pods?'],
    [rule('', 'zebras'), 'resources[0]', 'Kubernetes has no resource "zebras" in apiGroups ""'],
    [
      rule('apps', 'deployments Deployment'),
      'resources[1]',
      '"Deployment" is no resource: write it in lower case and in the plural, such as "deployments"',
    ],
    [
      rule('example.com', 'Widget'),
      'resources[0]',
      '"Widget" is no resource: write it in lower case and in the plural, such as "pods"',
    ],
    [rule('apps', 'pods'), 'resources[0]', 'Kubernetes has no resource "pods" in apiGroups "apps": pods are in ""'],
    [
      rule('batch', 'jobs deployments'),
      'resources[1]',
      'Kubernetes has no resource "deployments" in apiGroups "batch": deployments are in "apps"',
    ],
    [rule('core', 'pods'), 'apiGroups', 'Kubernetes has no API group "core": pods are in ""'],
    [rule('app', 'deployments'), 'apiGroups', 'Kubernetes has no API group "app": deployments are in "apps"'],
    [
      rule('networking.k8s.io', 'ingress'),
      'resources[0]',
      'Kubernetes has no resource "ingress" in apiGroups "networking.k8s.io". Did you mean ingresses?',
    ],
    [
      rule('rbac.authorization.k8s.io', 'secrets'),
      'resources[0]',
      'Kubernetes has no resource "secrets" in apiGroups "rbac.authorization.k8s.io": secrets are in ""',
    ],
    [
      rule('apps', 'deployments', { apiVersions: ['v2'] }),
      'apiVersions',
      'Kubernetes does not serve deployments in version "v2": it serves "v1"',
    ],
    [
      rule('apps', 'deployments', { apiVersions: ['apps/v1'] }),
      'apiVersions[0]',
      '"apps/v1" is no version: expected "v1" here, and the group in apiGroups',
    ],
    [
      rule('v1', 'pods'),
      'apiGroups[0]',
      '"v1" is no API group: expected "" for the core group, or a name such as "apps" without a version',
    ],
    [
      rule('', 'nodes', { scope: 'Namespaced' }),
      'scope',
      'no resource of the rule has the scope Namespaced: "nodes" has the scope Cluster',
    ],
    [rule('', 'pods/logs'), 'resources[0]', 'Kubernetes has no subresource "pods/logs". Did you mean pods/log?'],
    [
      rule('apps', 'deployments/exec'),
      'resources[0]',
      'Kubernetes has no subresource "deployments/exec": it has scale, status',
    ],
    [
      rule('', 'pods/log', { operations: ['*'] }),
      'resources[0]',
      'API servers call no webhooks for "pods/log", which is only read. Control access to it with RBAC',
    ],
    [
      rule('', 'pods pods/exec'),
      'resources[1]',
      'requests for "pods/exec" have the operation CONNECT, never CREATE, UPDATE',
    ],
    [
      rule('', 'pods', { operations: ['CONNECT'] }),
      'resources[0]',
      'requests for "pods" have the operation CREATE, UPDATE, DELETE, never CONNECT',
    ],
    [
      rule('apps', 'deployments/scale', { operations: ['CREATE'] }),
      'resources[0]',
      'requests for "deployments/scale" have the operation UPDATE, never CREATE',
    ],
  ];
  for (const [wrong, field, message] of cases) {
    it(`are told by ${field}: ${message}`, () =>
      assert.deepEqual(impossibleRules([rule('', 'pods'), wrong]), [{ field: `spec.rules[1].${field}`, message }]));
  }

  const right: readonly RequestRule[] = [
    rule('', 'pods nodes pods/status pods/* pods/eviction pods/ephemeralcontainers'),
    rule('', 'pods/exec services/proxy nodes/proxy', { operations: ['*'] }),
    rule('', 'pods/exec pods', { operations: ['CREATE', 'CONNECT'] }),
    rule('*', '* others pod'),
    rule('*', 'deployments */scale */exec'),
    rule(' apps', 'pods deployments'),
    rule('apps example.com', 'pod deployments'),
    // Not known here: kinds, versions and subresources of newer releases, and those of custom resources.
    rule('apps extensions', 'ingresses'),
    rule('networking.k8s.io', 'zebras'),
    rule('networking.k8s.io', 'ingresses', { apiVersions: ['v1beta1'] }),
    rule('resource.k8s.io', 'resourceclaims', { apiVersions: ['v1beta2'] }),
    rule('', 'pods/zebra'),
    rule('example.com', 'widget widget/exec', { operations: ['CONNECT'] }),
    rule('apps', 'deployments', { apiVersions: ['v1beta1'] }),
    rule('autoscaling', 'horizontalpodautoscalers', { apiVersions: ['v1', 'v2'] }),
    rule('apps', 'deployments', { apiVersions: ['*'], scope: 'Namespaced' }),
    // Incomplete rules, which are reported elsewhere.
    { apiVersions: ['v1'], resources: ['pods'] },
    rule('', 'pods', { apiVersions: [], operations: [] }),
    rule('', ''),
  ];
  for (const one of right) {
    it(`are not ${JSON.stringify(one)}`, () => assert.deepEqual(impossibleRules([one]), []));
  }

  it('are judged up to a bound, whatever their number', () => {
    const names = Array.from({ length: 20_000 }, (_, index) => `deployment${index}`);
    assert.equal(impossibleRules([rule('apps', names.join(' '))]).length, 20);
    assert.equal(impossibleRules(names.map((name) => rule('apps', name))).length, 20);
    assert.deepEqual(impossibleRules([rule(names.join(' '), 'pods')]), []);
  });
});
