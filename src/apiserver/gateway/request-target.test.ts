import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { attributesOf, parseTarget, verbOf } from './request-target.ts';
import type { RequestTarget } from './request-target.ts';

const nothing = { namespace: undefined, name: undefined, subresource: undefined };

const cases: readonly (readonly [string, RequestTarget | undefined])[] = [
  ['/', { kind: 'path', path: '/' }],
  ['/version', { kind: 'path', path: '/version' }],
  ['/api/', { kind: 'path', path: '/api' }],
  ['/api/v1', { kind: 'path', path: '/api/v1' }],
  ['/apis/apps/v1/', { kind: 'path', path: '/apis/apps/v1' }],
  ['/api/v1/pods', { kind: 'resource', group: '', version: 'v1', ...nothing, resource: 'pods' }],
  [
    '/api/v1/namespaces/x',
    { kind: 'resource', group: '', version: 'v1', ...nothing, resource: 'namespaces', name: 'x' },
  ],
  [
    '/api/v1/namespaces/x/finalize',
    {
      kind: 'resource',
      group: '',
      version: 'v1',
      ...nothing,
      resource: 'namespaces',
      name: 'x',
      subresource: 'finalize',
    },
  ],
  [
    '/api/v1/namespaces/x/pods/y/status',
    { kind: 'resource', group: '', version: 'v1', resource: 'pods', namespace: 'x', name: 'y', subresource: 'status' },
  ],
  [
    '/api/v1/namespaces/x/services/y/proxy/a/b',
    {
      kind: 'resource',
      group: '',
      version: 'v1',
      resource: 'services',
      namespace: 'x',
      name: 'y',
      subresource: 'proxy/a/b',
    },
  ],
  [
    '/apis/apps/v1/namespaces/x/deployments',
    { kind: 'resource', group: 'apps', version: 'v1', ...nothing, resource: 'deployments', namespace: 'x' },
  ],
  [
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode',
    {
      kind: 'resource',
      group: 'rbac.authorization.k8s.io',
      version: 'v1',
      ...nothing,
      resource: 'clusterroles',
      name: 'system:node',
    },
  ],
  [
    '/apis/rbac.authorization.k8s.io/v1/clusterroles/a%1b%00b',
    {
      kind: 'resource',
      group: 'rbac.authorization.k8s.io',
      version: 'v1',
      ...nothing,
      resource: 'clusterroles',
      name: 'a\u001b\0b',
    },
  ],
  ['/api/v1/namespaces//pods', undefined],
  ['/api/v1/namespaces/%2e%2e/pods', undefined],
  ['/api/v1/namespaces/../pods', undefined],
  ['/%', undefined],
  ['pods', undefined],
  [`/api/v1/${'a/'.repeat(20)}`, undefined],
];

describe('parseTarget', () => {
  for (const [path, expected] of cases) {
    it(`reads ${path.slice(0, 60)}`, () => assert.deepEqual(parseTarget(path), expected));
  }

  it('answers every path, and names no part that is not in it', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.webPath(),
          fc.string().map((text) => `/api/v1/${text}`),
        ),
        (path) => {
          const target = parseTarget(path);
          if (target?.kind === 'resource') {
            const decoded = decodeURIComponent(path);
            for (const part of [target.namespace, target.name, target.subresource]) {
              assert.ok(part === undefined || (part !== '' && part !== '..' && decoded.includes(part)));
            }
          }
        },
      ),
    );
  });
});

describe('verbs', () => {
  const user = { username: 'alice', groups: [] };
  const target = parseTarget('/apis/apps/v1/namespaces/x/deployments/y/scale');
  const list = parseTarget('/api/v1/pods');

  it('are those that authorisers know', () => {
    assert.ok(list?.kind === 'resource' && target?.kind === 'resource');
    const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE'];
    assert.deepEqual(
      methods.map((method) => [verbOf(method, list, false), verbOf(method, target, false)]),
      [
        ['list', 'get'],
        ['create', 'create'],
        ['update', 'update'],
        ['patch', 'patch'],
        ['deletecollection', 'delete'],
        [undefined, undefined],
      ],
    );
    assert.equal(verbOf('GET', list, true), 'watch');
  });

  it('are requested with all parts of a target', () => {
    assert.ok(target !== undefined);
    assert.deepEqual(attributesOf(user, 'PATCH', target, false), {
      user,
      verb: 'patch',
      group: 'apps',
      version: 'v1',
      resource: 'deployments',
      subresource: 'scale',
      namespace: 'x',
      name: 'y',
    });
    assert.deepEqual(attributesOf(user, 'GET', { kind: 'path', path: '/version' }, false), {
      user,
      verb: 'get',
      path: '/version',
    });
  });
});
