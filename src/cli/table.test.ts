import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { manyLines, oneLine, table } from './table.ts';

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

  it('is as wide as its cells without a limit', () => {
    assert.ok(table(COLUMNS, [['one', 'x'.repeat(200), '']]).includes('x'.repeat(200)));
  });

  it('leaves out columns that cannot be narrow enough, first those that are the same in every row', () => {
    const columns = ['NAME', 'MODE', 'PHASE', 'REASON', 'READY', 'AGE'].map((header, index) => ({
      header,
      cell: (row: readonly string[]): string => row[index] ?? '',
    }));
    const rows = [
      ['one', 'protect', 'Active', 'Serving', '1', '5s'],
      ['two', 'protect', 'Degraded', 'FetchFailed', '1', '5s'],
    ];
    const headers = (maxWidth: number, from = rows): string =>
      table(columns, from, maxWidth).split('\n', 1)[0]?.replaceAll(/ +/g, ' ') ?? '';
    assert.equal(headers(60), 'NAME MODE PHASE REASON READY AGE');
    assert.equal(headers(44), 'NAME MODE PHASE REASON AGE');
    assert.equal(headers(34), 'NAME PHASE REASON AGE');
    assert.equal(headers(30, rows.slice(0, 1)), 'NAME MODE PHASE AGE');
    assert.equal(headers(1), 'NAME AGE');
  });
});

describe('untrusted text', () => {
  const hostile = 'a\u001B[31mred\u009B2J\r\n \u202Efdp.exe\u2066\u0085';

  it('on one line has neither line breaks nor characters that control a terminal or turn the direction', () => {
    assert.equal(oneLine(hostile), 'ared fdp.exe');
  });

  it('on many lines has line breaks only', () => {
    assert.equal(manyLines(hostile), 'ared\n fdp.exe');
  });
});
