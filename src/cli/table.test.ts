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

  const columnsOf = (...names: readonly string[]): typeof COLUMNS =>
    names.map((header, index) => ({ header, cell: (row: readonly string[]): string => row[index] ?? '' }));

  it('leaves out what is the same in every row first, and never states before other columns', () => {
    const columns = columnsOf('NAME', 'MODE', 'PHASE', 'REASON', 'READY', 'AGE');
    const rows = [
      ['one', 'protect', 'Active', 'Serving', '1', '5s'],
      ['two', 'protect', 'Degraded', 'FetchFailed', '1', '5s'],
    ];
    const headers = (maxWidth: number): string =>
      table(columns, rows, maxWidth).split('\n', 1)[0]?.replaceAll(/ +/g, ' ') ?? '';
    assert.equal(headers(60), 'NAME MODE PHASE REASON READY AGE');
    assert.equal(headers(48), 'NAME MODE PHASE REASON READY');
    assert.equal(headers(36), 'NAME MODE PHASE READY');
    assert.equal(headers(24), 'NAME PHASE READY');
    assert.equal(headers(1), 'NAME');
  });

  it('shows the phase before a message, and ends the message after a whole word', () => {
    const columns = columnsOf('NAME', 'MESSAGE', 'REMARK', 'PHASE');
    const rows = [
      ['one', 'the module cannot be fetched from its registry', 'also a sentence of many words', 'Degraded'],
    ];
    assert.equal(
      table(columns, rows, 40),
      ['NAME   MESSAGE                 PHASE', 'one    the module cannot be…   Degraded'].join('\n'),
    );
    assert.equal(table(columns, rows, 30), 'NAME   PHASE\none    Degraded');
  });

  it('never shortens names, so that no two are cut to the same text', () => {
    const names = ['policies.kafka-cluster', 'policies.kafka-operator'];
    const columns = columnsOf('NAMESPACE', 'NAME', 'MESSAGE').map((column, index) => ({
      ...column,
      name: index < 2 ? ('whole' as const) : undefined,
    }));
    const text = table(
      columns,
      names.map((name) => ['local-cluster', name, 'a message of some words']),
      30,
    );
    for (const name of names) {
      assert.ok(text.includes(`local-cluster   ${name}`), text);
    }
  });

  it('shortens names that nobody copies, as far as they differ', () => {
    const columns = columnsOf('RESOURCE', 'RESULT').map((column) => ({ ...column, name: 'distinct' as const }));
    const names = ['a', 'b'].map((one) => `Deployment shop/release-with-a-name-as-charts-have-them-${one}`);
    const rows = table(
      columns,
      names.map((name) => [name, 'fail']),
      40,
    ).split('\n');
    assert.deepEqual(
      rows.map((row) => row.length <= 40),
      [true, true, true],
    );
    assert.notEqual(rows[1], rows[2]);
  });

  it('shortens long references inside, because they differ at their ends', () => {
    const columns = columnsOf('NAME', 'MODULE');
    const text = table(columns, [['one', 'registry.example/policies/required-labels:1.0.0']], 30);
    assert.match(text, /^one {4}registr…ed-labels:1\.0\.0$/m);
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
