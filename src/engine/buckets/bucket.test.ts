import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseAdmissionReview } from '../review/admission-review.ts';
import type { JsonObject } from '../values/json-text.ts';
import { MUTATING, POD_RULE, TestTable, VALIDATING } from '../testing/bucket-table.ts';
import { bytes, podReview } from '../testing/reviews.ts';
import { ReviewSubject } from './review-subject.ts';

const MANY = 3_500;
const NAMESPACED = 'validating.fail.equivalent.namespaced.v1';

/** Number of candidates for a review. */
function candidateCount(table: TestTable, bucket: string, request: JsonObject = {}): number {
  const review = parseAdmissionReview(bytes(podReview(request)));
  assert.ok(review.target);
  return table.table.candidates(bucket, new ReviewSubject(review, review.target, table.namespaces)).length;
}

function clusterRequest(resource: string): JsonObject {
  const id = { group: '', version: 'v1', resource };
  return { namespace: null, name: 'one', resource: id, requestResource: id };
}

test('only policies of the request’s namespace are candidates, of thousands of tenants', () => {
  const table = new TestTable();
  for (let tenant = 0; tenant < MANY; tenant++) {
    table.add({ name: 'a', namespace: `tenant-${tenant}` });
  }
  assert.equal(candidateCount(table, NAMESPACED, { namespace: 'tenant-17' }), 1);
  assert.equal(candidateCount(table, NAMESPACED, { namespace: 'other' }), 0);
  assert.equal(candidateCount(table, NAMESPACED, clusterRequest('pods')), 0);
});

test('only policies that select the request’s namespace are candidates, of thousands', () => {
  const table = new TestTable();
  for (let tenant = 0; tenant < MANY; tenant++) {
    const namespaceSelector =
      tenant % 2 === 0
        ? { matchLabels: { 'kubernetes.io/metadata.name': `tenant-${tenant}` } }
        : { matchExpressions: [{ key: 'tenant', operator: 'In', values: [`t${tenant}`, 'all'] }] };
    table.add({ name: `p${tenant}`, spec: { namespaceSelector } });
  }
  table.namespaces.set('tenant-16', { 'kubernetes.io/metadata.name': 'tenant-16', tenant: 't17' });
  assert.equal(candidateCount(table, VALIDATING, { namespace: 'tenant-16' }), 2);
  assert.equal(candidateCount(table, VALIDATING, clusterRequest('nodes')), 0);
  // Namespace selectors do not exclude objects outside of namespaces.
  assert.equal(candidateCount(table, VALIDATING, clusterRequest('pods')), MANY);
});

test('policies for other operations and resources are not candidates', () => {
  const table = new TestTable();
  for (let index = 0; index < MANY; index++) {
    table.add({
      name: `p${index}`,
      spec: { rules: [{ ...POD_RULE, resources: [`kind-${index}`, 'pods/log'], operations: ['UPDATE'] }] },
    });
  }
  table.add({ name: 'all', spec: { rules: [{ ...POD_RULE, operations: ['*'], apiGroups: ['*'], resources: ['*'] }] } });
  assert.equal(candidateCount(table, VALIDATING), 1);
  assert.equal(candidateCount(table, VALIDATING, { operation: 'UPDATE', ...clusterRequest('kind-9') }), 2);
});

test('removed and changed policies are no longer candidates', () => {
  const table = new TestTable();
  const ids = ['a', 'b', 'c'].map((name) => table.add({ name }).id);
  table.add({ name: 'a', spec: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'other' } } } });
  assert.equal(candidateCount(table, VALIDATING), 2);
  table.add({ name: 'b', spec: { rules: [{ ...POD_RULE, resources: ['nodes'] }] } });
  assert.equal(candidateCount(table, VALIDATING), 1);
  assert.deepEqual(
    ids.map((id) => table.table.delete(id)),
    [true, true, true],
  );
  assert.equal(candidateCount(table, VALIDATING, { namespace: 'other' }), 0);
  assert.equal(table.table.delete('kw.cap.a'), false);
});

test('only policies whose object label is present are candidates, of thousands', () => {
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
  table.namespaces.set('default', { team: 'a' });
  const labelled = (labels: JsonObject): JsonObject => ({ metadata: { name: 'one', labels } });
  assert.equal(candidateCount(table, VALIDATING, { object: labelled({ app: 'app-16' }) }), 2);
  assert.equal(candidateCount(table, VALIDATING, { object: labelled({ tier: 'web' }) }), 1);
  // Either object may have the label: a deletion has only an old one.
  const deletion = { operation: 'CREATE', object: null, oldObject: labelled({ app: 'app-17' }) };
  assert.equal(candidateCount(table, VALIDATING, deletion), 2);
  const change = { object: labelled({ app: 'app-16' }), oldObject: labelled({ app: 'app-17' }) };
  assert.equal(candidateCount(table, VALIDATING, change), 3);
  table.table.delete('kw.cap.p16');
  assert.equal(candidateCount(table, VALIDATING, { object: labelled({ app: 'app-16' }) }), 1);
});

test('policies that select by label are candidates when mutating policies may add the label', () => {
  const table = new TestTable();
  table.add({ name: 'late', spec: { mutating: true, objectSelector: { matchLabels: { app: 'web' } } } });
  assert.equal(candidateCount(table, MUTATING), 1);
});

test('an object with very many labels costs no more than matching every policy', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { objectSelector: { matchLabels: { app: 'web' } } } });
  table.add({ name: 'b', spec: { objectSelector: { matchLabels: { app: 'other' } } } });
  const labels = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`label-${index}`, 'x']));
  assert.equal(candidateCount(table, VALIDATING, { object: { metadata: { labels } } }), 2);
});

test('a label that is not a string is ignored', () => {
  const table = new TestTable();
  table.add({ name: 'a', spec: { objectSelector: { matchLabels: { app: 'web' } } } });
  assert.equal(candidateCount(table, VALIDATING, { object: { metadata: { labels: { app: { toString: 1 } } } } }), 0);
});
