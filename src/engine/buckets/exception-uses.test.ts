import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ExceptionTable } from '../exceptions/exception-table.ts';
import { deploymentReview, podReview } from '../testing/reviews.ts';
import { TestTable, VALIDATING } from '../testing/bucket-table.ts';

function tableWith(...policies: readonly string[]): TestTable {
  const exceptions = new ExceptionTable();
  exceptions.set({
    namespace: 'default',
    name: 'one',
    uid: 'uid-one',
    version: '1',
    policies: policies.map((name) => ({ id: `kw.cap.${name}` })),
    objects: { kinds: [{ apiGroup: '', kind: 'Pod' }], names: ['nginx'] },
    matchConditions: [],
    expiresAt: new Date(Date.now() + 86_400_000).toISOString().replace(/\.\d+Z/, 'Z'),
  });
  const table = new TestTable({ exceptions });
  for (const name of policies) {
    table.add({ name, answer: () => ({ accepted: false, message: 'no' }) });
  }
  return table;
}

function usesOf(table: TestTable, review = podReview()): readonly string[] {
  const result = table.admit(VALIDATING, review);
  return result.kind === 'verdict' ? result.uses : assert.fail(result.kind);
}

test('a request uses an exception once, whatever the number of its policies', () => {
  assert.deepEqual(usesOf(tableWith('a', 'b')), ['uid-one']);
});

test('a dry run, and a request that no exception is for, use none', () => {
  const table = tableWith('a');
  assert.deepEqual(usesOf(table, podReview({ dryRun: true })), []);
  assert.deepEqual(usesOf(table, podReview({ namespace: 'other' })), []);
  assert.deepEqual(usesOf(table, deploymentReview({})), []);
});
