import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempDisposable, readdir, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { LoadingRecord, recordPath, suspectKey, type Suspect } from './loading-record.ts';
import { Quarantine, QUARANTINE_MS } from './quarantine.ts';

const folderOf = (): ReturnType<typeof mkdtempDisposable> =>
  mkdtempDisposable(join(tmpdir(), 'portcullis-quarantine-'));

const never = (error: string): void => assert.fail(error);

/** When the process started that had the id of this one before it, as in a container. */
const EARLIER = 1;

/** What a thread records before the process ends. */
function dies(folder: string, lane: string, ...loads: readonly Suspect[]): void {
  const record = new LoadingRecord(recordPath(folder, lane), EARLIER);
  for (const load of loads) {
    record.begin(load);
  }
}

describe('the quarantine', () => {
  it('has what each thread was loading when the process ended, and only that', async () => {
    await using folder = await folderOf();
    dies(folder.path, 'quick', { key: 'a long key of an earlier load', policy: 'one' }, { key: 'b', policy: 'two' });
    dies(folder.path, 'patient', { key: 'c', policy: 'three' });
    const quarantine = new Quarantine(folder.path, never, 1_000);
    assert.deepEqual(
      quarantine.list().map(({ key, policy, ends, until }) => [key, policy, ends, until]),
      [
        ['c', 'three', 1, 1_000 + QUARANTINE_MS],
        ['b', 'two', 1, 1_000 + QUARANTINE_MS],
      ],
    );
    assert.deepEqual(await readdir(folder.path), ['quarantine.json']);
  });

  it('has nothing that this process itself loads, for a server that shares the folder', async () => {
    await using folder = await folderOf();
    new LoadingRecord(recordPath(folder.path, 'quick')).begin({ key: 'a', policy: 'one' });
    assert.deepEqual(new Quarantine(folder.path, never).list(), []);
  });

  it('is empty after an end between two loads, and after an orderly one', async () => {
    await using folder = await folderOf();
    const record = new LoadingRecord(recordPath(folder.path, 'quick'));
    record.begin({ key: 'a', policy: 'one' });
    record.end();
    assert.deepEqual(new Quarantine(folder.path, never).list(), []);
    assert.deepEqual(new Quarantine(join(folder.path, 'none'), never).list(), []);
  });

  it('lasts longer each time, over restarts, at most an hour', async () => {
    await using folder = await folderOf();
    const waits: number[] = [];
    for (let now = 0; now < 6; now++) {
      dies(folder.path, 'quick', { key: 'a', policy: 'one' });
      waits.push(((new Quarantine(folder.path, never, now).list()[0]?.until ?? 0) - now) / 1_000);
    }
    assert.deepEqual(waits, [30, 120, 480, 1_920, 3_600, 3_600]);
    assert.equal(new Quarantine(folder.path, never, 10).list()[0]?.ends, 6);
    assert.deepEqual(new Quarantine(folder.path, never, 1e9).list(), []);
  });

  it('ends when the policy was loaded, with its module or another one', async () => {
    await using folder = await folderOf();
    dies(folder.path, 'quick', { key: suspectKey('sha256:1', '{}'), policy: 'one' });
    dies(folder.path, 'patient', { key: 'sha256:2', policy: 'two' });
    const quarantine = new Quarantine(folder.path, never);
    quarantine.loaded('three', ['sha256:1', 'sha256:3']);
    assert.equal(quarantine.list().length, 2);
    quarantine.loaded('one', ['sha256:4']);
    quarantine.loaded('three', ['sha256:2']);
    assert.deepEqual(quarantine.list(), []);
    assert.deepEqual(new Quarantine(folder.path, never).list(), []);
  });

  it('blames no settings but those that were checked', () => {
    assert.notEqual(suspectKey('sha256:1', '{"a":1}'), suspectKey('sha256:1', '{"a":2}'));
    assert.notEqual(suspectKey('sha256:1', '{}'), suspectKey('sha256:1'));
  });

  it('leaves records of processes that run, and of other machines', async () => {
    await using folder = await folderOf();
    const record = (pid: number | undefined): string => JSON.stringify({ key: 'a', policy: 'one', pid });
    await writeFile(join(folder.path, 'loading-another.machine-quick.json'), record(1));
    await writeFile(recordPath(folder.path, 'quick'), `${record(process.ppid)}\n`);
    assert.deepEqual(new Quarantine(folder.path, never).list(), []);
    assert.equal((await readdir(folder.path)).length, 2);
    const { pid } = spawnSync(process.execPath, ['--version']);
    await writeFile(recordPath(folder.path, 'quick'), `${record(pid)}\nend of an earlier text`);
    assert.equal(new Quarantine(folder.path, never).list().length, 1);
    assert.ok(recordPath(folder.path, 'quick').includes(hostname()));
  });

  it('ignores files that are damaged', async () => {
    await using folder = await folderOf();
    for (const text of ['', '{', '[]', '{"quarantined": [{"key": 1}, null]}', '{"quarantined": {}}']) {
      await writeFile(join(folder.path, 'quarantine.json'), text);
      await writeFile(recordPath(folder.path, 'quick'), text);
      assert.deepEqual(new Quarantine(folder.path, never).list(), []);
    }
  });
});
