import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAdmissionReview } from '../admission-review.ts';
import type { JsonObject } from '../json-text.ts';
import { MUTATING, POD_RULE, TestTable, VALIDATING } from '../testing/bucket-table.ts';
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

test('of thousands of policies that select objects by a label, only those are looked at whose label an object has', () => {
  const table = new TestTable();
  for (let index = 0; index < MANY; index++) {
    const objectSelector =
      index % 2 === 0
        ? { matchLabels: { app: `app-${index}`, tier: 'web' } }
        : { matchExpressions: [{ key: 'app', operator: 'In', values: [`app-${index}`, 'any'] }] };
    table.add({ name: `p${index}`, spec: { objectSelector, namespaceSelector: { matchLabels: { team: 'a' } } } });
  }
  table.add({
    name: 'unlike',
    spec: { objectSelector: { matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] } },
  });
  table.table.namespaces.set('default', { team: 'a' });
  const labelled = (labels: JsonObject): JsonObject => ({ metadata: { name: 'one', labels } });
  assert.equal(lookedAt(table, VALIDATING, { object: labelled({ app: 'app-16' }) }), 2);
  assert.equal(lookedAt(table, VALIDATING, { object: labelled({ tier: 'web' }) }), 1);
  // Either object may have it: a deletion has only an old one.
  const deletion = { operation: 'CREATE', object: null, oldObject: labelled({ app: 'app-17' }) };
  assert.equal(lookedAt(table, VALIDATING, deletion), 2);
  const change = { object: labelled({ app: 'app-16' }), oldObject: labelled({ app: 'app-17' }) };
  assert.equal(lookedAt(table, VALIDATING, change), 3);
  table.table.delete('kw.cap.p16');
  assert.equal(lookedAt(table, VALIDATING, { object: labelled({ app: 'app-16' }) }), 1);
});

test('where policies may give the object a label, those that select by it are looked at', () => {
  const table = new TestTable();
  table.add({ name: 'late', spec: { mutating: true, objectSelector: { matchLabels: { app: 'web' } } } });
  assert.equal(lookedAt(table, MUTATING), 1);
});

test('objects with more labels than anybody gives one cost no more than looking at the policies', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { objectSelector: { matchLabels: { app: 'web' } } } });
  table.add({ name: 'b', spec: { objectSelector: { matchLabels: { app: 'other' } } } });
  const labels = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`label-${index}`, 'x']));
  assert.equal(lookedAt(table, VALIDATING, { object: { metadata: { labels } } }), 2);
});

test('what is no text is no label', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { objectSelector: { matchLabels: { app: 'web' } } } });
  assert.equal(lookedAt(table, VALIDATING, { object: { metadata: { labels: { app: { toString: 1 } } } } }), 0);
});
