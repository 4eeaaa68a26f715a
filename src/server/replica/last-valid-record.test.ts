import assert from 'node:assert/strict';
import { mkdtempDisposable, readdir, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { LogEntry } from '../../log/index.ts';
import { type LastValidEntry, LastValidRecord } from './last-valid-record.ts';

const PROFILE = { apiVersion: 'example.com/v1', kind: 'ToolProfile', name: 'profile' };
const ENTRIES: readonly LastValidEntry[] = [
  [{ ...PROFILE, namespace: 'tool-a' }, '{"spec":{"uid":5}}'],
  [{ apiVersion: 'v1', kind: 'Namespace', name: 'tool-b' }, '{"metadata":{"annotations":{"uid":"6"}}}'],
];

describe('the record of last valid parameters', () => {
  it('returns what was written, with permissions for its owner only', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'portcullis-last-valid-'));
    const record = new LastValidRecord(folder.path, () => assert.fail('expected no log entry'));
    assert.deepEqual(record.read(), []);
    record.changed(() => ENTRIES);
    await record.flush();
    assert.deepEqual(record.read(), ENTRIES);
    assert.equal((await stat(join(folder.path, 'last-valid-parameters.json'))).mode & 0o777, 0o600);
  });

  it('has the entries that fit', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'portcullis-last-valid-'));
    const record = new LastValidRecord(folder.path, () => assert.fail('expected no log entry'), 300);
    const large: LastValidEntry = [{ ...PROFILE, namespace: 'large' }, 'x'.repeat(300)];
    record.changed(() => [large, ...ENTRIES.slice(0, 1)]);
    await record.flush();
    assert.deepEqual(record.read(), ENTRIES.slice(0, 1));
  });

  it('sets an invalid file aside', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'portcullis-last-valid-'));
    for (const content of [
      '{',
      '{"format":2,"entries":[]}',
      '{"format":1,"entries":[[{"kind":"A"},"x"]]}',
      '[]',
      '1',
    ]) {
      const log: LogEntry[] = [];
      const record = new LastValidRecord(folder.path, (entry) => log.push(entry));
      await writeFile(join(folder.path, 'last-valid-parameters.json'), content);
      assert.deepEqual(record.read(), [], content);
      assert.equal(log.length, 1, content);
    }
    assert.ok(!(await readdir(folder.path)).includes('last-valid-parameters.json'));
  });
});
