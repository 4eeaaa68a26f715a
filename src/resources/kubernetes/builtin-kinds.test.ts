import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { builtinKind } from './builtin-kinds.ts';

describe('names of builtin kinds', () => {
  it('have irregular plurals', () => {
    const kinds = [
      ['', 'Endpoints'],
      ['networking.k8s.io', 'Ingress'],
      ['networking.k8s.io', 'NetworkPolicy'],
      ['', 'ComponentStatus'],
      ['networking.k8s.io', 'IngressClass'],
    ] as const;
    assert.deepEqual(
      kinds.map(([group, kind]) => builtinKind(group, kind)?.resource),
      ['endpoints', 'ingresses', 'networkpolicies', 'componentstatuses', 'ingressclasses'],
    );
  });

  it('have short names, categories and scopes', () => {
    assert.deepEqual(builtinKind('apps', 'Deployment'), {
      group: 'apps',
      version: 'v1',
      kind: 'Deployment',
      resource: 'deployments',
      singular: 'deployment',
      namespaced: true,
      shortNames: ['deploy'],
      categories: ['all'],
    });
    assert.equal(builtinKind('rbac.authorization.k8s.io', 'ClusterRole')?.namespaced, false);
  });

  it('belong to a group', () => {
    assert.equal(builtinKind('example.com', 'Pod'), undefined);
    assert.equal(builtinKind('', 'constructor'), undefined);
  });
});
