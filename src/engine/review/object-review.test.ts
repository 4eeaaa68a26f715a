import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAdmissionReview } from './admission-review.ts';
import { evaluate } from '../evaluate.ts';
import { createGuest } from '../guests/index.ts';
import { createPolicy } from '../loaded-policy.ts';
import type { LoadedPolicy } from '../loaded-policy.ts';
import type { JsonObject } from '../values/json-text.ts';
import { ObjectReview } from './object-review.ts';
import type { ObjectRequest } from './object-review.ts';
import { parsePolicies } from '../definition/policies-file.ts';
import { MUTATING, TestTable, VALIDATING } from '../testing/bucket-table.ts';
import { label } from '../testing/pod-labels.ts';
import { bytes } from '../testing/reviews.ts';
import { admit } from '../buckets/admit.ts';

const POD = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'shop' }, spec: { hostPID: true } };
const REQUEST: ObjectRequest = {
  uid: 'u',
  kind: { group: '', version: 'v1', kind: 'Pod' },
  resource: { group: '', version: 'v1', resource: 'pods' },
  operation: 'CREATE',
  name: 'web',
  namespace: 'shop',
  userInfo: { username: 'auditor' },
  object: POD,
};

function celPolicy(expression: string): LoadedPolicy {
  const settings = { validations: [{ expression, message: 'no' }] };
  const file = JSON.stringify({ id: { module: 'builtin:cel', settings } });
  const [definition] = parsePolicies(file, 'policies.yml').policies;
  assert.ok(definition);
  return createPolicy(definition, () => createGuest({ mode: 'builtin', name: 'cel' }), {
    port: { request: () => assert.fail('expected no host call') },
    log: () => undefined,
  });
}

test('an object is evaluated like a review of an API server', () => {
  const read = parseAdmissionReview(bytes({ request: { ...REQUEST } }));
  for (const expression of [
    'object.spec.hostPID == false',
    'request.namespace == "shop" && request.userInfo.username == "auditor"',
    'oldObject == null && request.name == object.metadata.name',
  ]) {
    const policy = celPolicy(expression);
    assert.deepEqual(
      evaluate(policy, new ObjectReview(REQUEST), { route: 'audit' }),
      evaluate(policy, read, { route: 'audit' }),
      expression,
    );
  }
});

test('the policies of a bucket evaluate and change an object', () => {
  const table = new TestTable();
  table.add({ name: 'denies', answer: () => ({ accepted: false, message: 'no' }) });
  table.add({ name: 'labels', spec: { mutating: true }, answer: label('seen', 'yes') });
  const review = new ObjectReview({ ...REQUEST, object: { ...POD, metadata: { ...POD.metadata, labels: {} } } });
  const denied = admit(table.table, VALIDATING, review, {});
  assert.ok(denied.kind === 'verdict');
  assert.deepEqual([denied.verdict.allowed, denied.verdict.message], [false, 'cap/denies: no']);
  const labelled = admit(table.table, MUTATING, review, {});
  assert.ok(labelled.kind === 'verdict');
  const [operation] = JSON.parse(labelled.verdict.patch ?? '[]') as readonly JsonObject[];
  assert.deepEqual(operation, { op: 'add', path: '/metadata/labels/seen', value: 'yes' });
});
