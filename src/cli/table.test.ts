import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { table } from './table.ts';

const COLUMNS = ['NAME', 'MODULE', 'MESSAGE'].map((header, index) => ({
  header,
  cell: (row: readonly string[]): string => row[index] ?? '',
}));

describe('table', () => {
  it('shortens the widest columns so that lines fit, but never the first', () => {
    const rows = [['a-long-name-to-copy', 'module.wasm', 'a message that is much longer than any terminal']];
    const [header = '', row = '', ...more] = table(COLUMNS, rows, 60).split('\n');
    assert.deepEqual([header, more], ['NAME                  MODULE        MESSAGE', []]);
    assert.match(row, /^a-long-name-to-copy {3}module\.wasm {3}a message .*…$/);
    assert.ok(row.length <= 60, row);
  });

  it('is as wide as its cells without a limit, and keeps columns that cannot be narrower', () => {
    const rows = [['one', 'x'.repeat(200), '']];
    assert.ok(table(COLUMNS, rows).includes('x'.repeat(200)));
    assert.match(table(COLUMNS, rows, 5), /^one +x+…/m);
  });
});
