// Requests that no policy of a namespace sees, whatever webhook sends them.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLUSTER_COLLECTORS } from '../../resources/index.ts';
import type { JsonObject } from '../values/json-text.ts';
import { TestTable } from '../testing/bucket-table.ts';
import { podReview } from '../testing/reviews.ts';

const EVERYTHING = {
  rules: [{ operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], scope: '*' }],
};
const deny = (): unknown => ({ accepted: false, message: 'no' });

function request(group: string, resource: string, subResource = ''): JsonObject {
  const id = { group, version: 'v1', resource };
  return { resource: id, requestResource: id, subResource, requestSubResource: subResource };
}

const COLLECTOR = { userInfo: { username: CLUSTER_COLLECTORS[0] ?? '' } };
const finalizers = (...names: string[]): JsonObject => ({ metadata: { name: 'nginx', finalizers: names } });

for (const [what, isSeen, given] of [
  ['pods', true, {}],
  ['RoleBindings', false, request('rbac.authorization.k8s.io', 'rolebindings')],
  [
    'RoleBindings in another group than the client wrote',
    false,
    { ...request('rbac.authorization.k8s.io', 'roles'), resource: request('', 'pods')['resource'] ?? null },
  ],
  ['tokens', false, request('', 'serviceaccounts', 'token')],
  ['service accounts', true, request('', 'serviceaccounts')],
  ['tokens of another group', true, request('example.com', 'serviceaccounts', 'token')],
  ['access reviews', false, request('authorization.k8s.io', 'localsubjectaccessreviews')],
  ['policies', false, request('policies.kubewarden.io', 'admissionpolicies')],
  ['policies of governance', false, request('policy.open-cluster-management.io', 'policies')],
  ['Leases', true, request('coordination.k8s.io', 'leases')],
  ['deletions', true, { operation: 'DELETE', object: null }],
  ['deletions by the garbage collector', false, { operation: 'DELETE', object: null, ...COLLECTOR }],
  [
    'deletions by another controller',
    true,
    { operation: 'DELETE', object: null, userInfo: { username: 'system:serviceaccount:kube-system:job-controller' } },
  ],
  ['creations by the garbage collector', true, COLLECTOR],
  [
    'a finalizer that the garbage collector removes',
    false,
    { operation: 'UPDATE', oldObject: finalizers('a', 'b'), object: finalizers('b'), ...COLLECTOR },
  ],
  ['the last one', false, { operation: 'UPDATE', oldObject: finalizers('a'), object: { metadata: {} }, ...COLLECTOR }],
  [
    'one that it replaces',
    true,
    { operation: 'UPDATE', oldObject: finalizers('a', 'b'), object: finalizers('c'), ...COLLECTOR },
  ],
  [
    'one that it adds',
    true,
    { operation: 'UPDATE', oldObject: finalizers('a'), object: finalizers('a', 'b'), ...COLLECTOR },
  ],
  [
    'another change of it',
    true,
    { operation: 'UPDATE', oldObject: finalizers('a'), object: finalizers('a'), ...COLLECTOR },
  ],
  ['a finalizer that a user removes', true, { operation: 'UPDATE', oldObject: finalizers('a'), object: finalizers() }],
] as readonly (readonly [string, boolean, JsonObject])[]) {
  test(`a policy of a namespace ${isSeen ? 'sees' : 'never sees'} ${what}`, () => {
    for (const ownWebhook of [false, true]) {
      const table = new TestTable();
      const spec = { ...EVERYTHING, ownWebhook };
      const tenant = table.add({ name: 'all', namespace: 'default', spec, answer: deny });
      const cluster = table.add({ name: 'all', spec, answer: deny });
      assert.equal(table.evaluate(tenant.match.bucket, podReview(given)).verdict.allowed, !isSeen);
      assert.equal(table.evaluate(cluster.match.bucket, podReview(given)).verdict.allowed, false);
    }
  });
}
