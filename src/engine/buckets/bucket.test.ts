import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAdmissionReview } from '../admission-review.ts';
import type { JsonObject } from '../json-text.ts';
import { POD_RULE, TestTable, VALIDATING } from '../testing/bucket-table.ts';
import { bytes, podReview } from '../testing/reviews.ts';
import { NamespaceLookup } from './namespace-lookup.ts';
import { ReviewSubject } from './review-subject.ts';

const MANY = 3_500;
const NAMESPACED = 'validating.fail.equivalent.namespaced.v1';

/** How many policies are looked at for a review. */
function lookedAt(table: TestTable, bucket: string, request: JsonObject = {}): number {
  const review = parseAdmissionReview(bytes(podReview(request)));
  assert.ok(review.target);
  const lookup = new NamespaceLookup(table.table.namespaces, table.options.port);
  return table.table.candidates(bucket, new ReviewSubject(review, review.target, lookup)).length;
}

function clusterRequest(resource: string): JsonObject {
  const id = { group: '', version: 'v1', resource };
  return { namespace: null, name: 'one', resource: id, requestResource: id };
}

test('of the policies of thousands of tenants, only those of the request’s namespace are looked at', () => {
  const table = new TestTable();
  for (let tenant = 0; tenant < MANY; tenant++) {
    table.add({ name: 'a', namespace: `tenant-${tenant}` });
  }
  assert.equal(lookedAt(table, NAMESPACED, { namespace: 'tenant-17' }), 1);
  assert.equal(lookedAt(table, NAMESPACED, { namespace: 'other' }), 0);
  assert.equal(lookedAt(table, NAMESPACED, clusterRequest('pods')), 0);
});

test('of thousands of policies that select one namespace each, only those that select the request’s are looked at', () => {
  const table = new TestTable();
  for (let tenant = 0; tenant < MANY; tenant++) {
    const namespaceSelector =
      tenant % 2 === 0
        ? { matchLabels: { 'kubernetes.io/metadata.name': `tenant-${tenant}` } }
        : { matchExpressions: [{ key: 'tenant', operator: 'In', values: [`t${tenant}`, 'all'] }] };
    table.add({ name: `p${tenant}`, spec: { namespaceSelector } });
  }
  table.table.namespaces.set('tenant-16', { 'kubernetes.io/metadata.name': 'tenant-16', tenant: 't17' });
  assert.equal(lookedAt(table, VALIDATING, { namespace: 'tenant-16' }), 2);
  assert.equal(lookedAt(table, VALIDATING, clusterRequest('nodes')), 0);
  // No selector of namespaces leaves out what is in none.
  assert.equal(lookedAt(table, VALIDATING, clusterRequest('pods')), MANY);
});

test('policies for other operations and resources are not looked at', () => {
  const table = new TestTable();
  for (let index = 0; index < MANY; index++) {
    table.add({
      name: `p${index}`,
      spec: { rules: [{ ...POD_RULE, resources: [`kind-${index}`, 'pods/log'], operations: ['UPDATE'] }] },
    });
  }
  table.add({ name: 'all', spec: { rules: [{ ...POD_RULE, operations: ['*'], apiGroups: ['*'], resources: ['*'] }] } });
  assert.equal(lookedAt(table, VALIDATING), 1);
  assert.equal(lookedAt(table, VALIDATING, { operation: 'UPDATE', ...clusterRequest('kind-9') }), 2);
});

test('policies that are taken out or changed are not found any more', () => {
  const table = new TestTable();
  const ids = ['a', 'b', 'c'].map((name) => table.add({ name }).id);
  table.add({ name: 'a', spec: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'other' } } } });
  assert.equal(lookedAt(table, VALIDATING), 2);
  table.add({ name: 'b', spec: { rules: [{ ...POD_RULE, resources: ['nodes'] }] } });
  assert.equal(lookedAt(table, VALIDATING), 1);
  assert.deepEqual(
    ids.map((id) => table.table.delete(id)),
    [true, true, true],
  );
  assert.equal(lookedAt(table, VALIDATING, { namespace: 'other' }), 0);
  assert.equal(table.table.delete('kw.cap.a'), false);
});
