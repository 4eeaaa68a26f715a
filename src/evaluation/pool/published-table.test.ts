import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TableChange, TableEntry } from '../evaluation-protocol.ts';
import { PublishedTable } from './published-table.ts';

const entry = (id: string, bucket?: string, alsoIn?: readonly string[]): TableEntry => ({
  id,
  failed: { message: 'no', failurePolicy: 'Fail' },
  ...(bucket === undefined ? {} : { match: { bucket } as NonNullable<TableEntry['match']> }),
  ...(alsoIn === undefined ? {} : { alsoIn }),
});

const change = (upserts: readonly TableEntry[], removals: readonly string[] = []): TableChange => ({
  upserts,
  removals,
  modules: [],
  retired: [],
});

describe('the published table', () => {
  it('numbers policies for as long as they are there, and never two alike', () => {
    const table = new PublishedTable();
    const [a = 0, b = 0] = table.apply(change([entry('a'), entry('b')]));
    assert.notEqual(a, b);
    assert.ok(a > 0 && b > 0);
    assert.deepEqual([table.policyOf(a), table.policyOf(b)], ['a', 'b']);
    assert.deepEqual(table.apply(change([entry('b'), entry('a')])), [b, a]);
    const [c = 0] = table.apply(change([entry('c')], ['a']));
    assert.equal(table.policyOf(a), undefined);
    assert.ok(![a, b].includes(c), 'a number that is free is not taken again');
  });

  it('gives all of it to a worker that has nothing', () => {
    const table = new PublishedTable();
    const numbers = table.apply(change([entry('a'), entry('b')]));
    table.apply(change([], ['a']));
    const whole = table.whole();
    assert.deepEqual(
      whole.change.upserts.map(({ id }) => id),
      ['b'],
    );
    assert.deepEqual(whole.numbers, [numbers[1]]);
  });

  it('knows in which buckets a policy is evaluated', () => {
    const table = new PublishedTable();
    table.apply(change([entry('kw.cap.a', 'validating', ['mutating']), entry('kw.cap.b')]));
    const own = ['validating.kw.cap.a', 'mutating.kw.cap.a', 'kw.cap.a'];
    const buckets = ['validating', 'mutating', ...own, 'mutating.kw.cap.b', 'other', 'other.kw.cap.a'];
    assert.deepEqual(
      buckets.filter((bucket) => table.isIn('kw.cap.a', bucket)),
      ['validating', 'mutating', ...own],
    );
    assert.deepEqual(
      buckets.filter((bucket) => table.isIn('kw.cap.b', bucket)),
      ['mutating.kw.cap.b'],
    );
    assert.equal(table.isIn('kw.cap.c', 'validating'), false);
  });
});
