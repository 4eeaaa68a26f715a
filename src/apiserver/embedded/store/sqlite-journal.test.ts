import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, test } from 'node:test';
import type { KubernetesObject } from '../../../resources/index.ts';
import { CollectionStore } from './collection-store.ts';
import { SqliteJournal } from './sqlite-journal.ts';
import type { Recovery, SqliteJournalOptions } from './sqlite-journal.ts';

const THINGS = 'things.example.com';

/** Calls a function with the path of a new file, which is deleted afterwards. */
function withFile(use: (file: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'portcullis-journal-'));
  try {
    use(join(folder, 'cluster.db'));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Opens the file, and closes it after the call. */
function withStore<T>(
  options: SqliteJournalOptions,
  use: (store: CollectionStore, recovery: Recovery | undefined, journal: SqliteJournal) => T,
): T {
  let recovery: Recovery | undefined;
  const journal = SqliteJournal.open({ ...options, onRecovery: (one) => (recovery = one) });
  const store = new CollectionStore({ journal });
  try {
    return use(store, recovery, journal);
  } finally {
    store.close();
  }
}

function put(store: CollectionStore, name: string, value: string): KubernetesObject | undefined {
  const object = { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name }, value };
  return store.commit([{ type: 'put', collection: THINGS, object, expected: store.get(THINGS, '', name) }])?.[0];
}

/** A file with some hundred pages. */
function fill(file: string): void {
  withStore({ file }, (store) => {
    for (let count = 0; count < 100; count++) {
      put(store, `thing-${count}`, 'x'.repeat(9_000));
    }
  });
}

describe('a file', () => {
  test('has everything that was written, and versions go on', () => {
    withFile((file) => {
      withStore({ file }, (store, _, journal) => {
        put(store, 'a', '1');
        put(store, 'a', '2');
        put(store, 'b', '1');
        const b = store.get(THINGS, '', 'b');
        assert.ok(b);
        store.commit([{ type: 'remove', collection: THINGS, expected: b }]);
        journal.writeSetting('key', 'value');
      });
      withStore({ file }, (store, recovery, journal) => {
        assert.equal(recovery, undefined);
        assert.equal(store.revision, 4, 'the newest change was a deletion');
        assert.equal(store.get(THINGS, '', 'a')?.['value'], '2');
        assert.equal(store.get(THINGS, '', 'b'), undefined);
        assert.equal(put(store, 'c', '1')?.metadata.resourceVersion, '5');
        assert.equal(journal.readSetting('key'), 'value');
      });
    });
  });

  test('is for its owner only', { skip: process.platform === 'win32' }, () => {
    withFile((file) => {
      fill(file);
      assert.equal(statSync(file).mode & 0o777, 0o600);
    });
  });

  test('belongs to one at a time, whichever process that is', () => {
    withFile((file) => {
      withStore({ file }, () => {
        const refusal = { code: 'database-unavailable', message: /another process has it open/ };
        assert.throws(() => SqliteJournal.open({ file }), refusal);
        const program = `
          const { SqliteJournal } = await import(${JSON.stringify(new URL('./sqlite-journal.ts', import.meta.url).href)});
          try { SqliteJournal.open({ file: ${JSON.stringify(file)} }); } catch (error) { console.log(error.code); }`;
        const other = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' });
        assert.equal(other.stdout, 'database-unavailable\n');
      });
      withStore({ file }, (store) => assert.ok(put(store, 'a', '1')));
    });
  });

  test('of another program is left alone', () => {
    withFile((file) => {
      const other = new DatabaseSync(file);
      other.exec('CREATE TABLE songs (title TEXT)');
      other.close();
      assert.throws(() => SqliteJournal.open({ file }), { code: 'database-unavailable', message: /another program/ });
      const again = new DatabaseSync(file);
      assert.equal(again.prepare('SELECT count(*) AS count FROM songs').get()?.['count'], 0);
      again.close();
    });
  });

  test('of a newer version is left alone', () => {
    withFile((file) => {
      fill(file);
      const newer = new DatabaseSync(file);
      newer.exec('PRAGMA user_version = 99');
      newer.close();
      assert.throws(() => SqliteJournal.open({ file }), {
        code: 'database-unavailable',
        message: /expected format 1, got 99/,
      });
    });
  });

  test('that cannot be created is an error', () => {
    withFile((file) => {
      writeFileSync(file, '');
      assert.throws(() => SqliteJournal.open({ file: join(file, 'below.db') }), { code: 'database-unavailable' });
    });
  });
});

describe('a damaged file is kept aside, and an empty one begins', () => {
  const damages: Readonly<Record<string, (file: string) => void>> = {
    'cut short': (file) => truncateSync(file, Math.floor(statSync(file).size / 3 / 4_096) * 4_096),
    'cut short within a page': (file) => truncateSync(file, statSync(file).size - 1_000),
    'garbage at its beginning': (file) => overwrite(file, 0, 100),
    'garbage in all pages but the first': (file) => overwrite(file, 4_096, statSync(file).size - 4_096),
    'garbage in one page': (file) => overwrite(file, Math.floor(statSync(file).size / 2 / 4_096) * 4_096, 4_096),
    'one letter of an object changed': (file) => {
      const bytes = readFileSync(file);
      // This page has only a part of one object's text. SQLite has no checksum for it.
      bytes[bytes.indexOf('x'.repeat(4_000))] = 'y'.charCodeAt(0);
      writeFileSync(file, bytes);
    },
    'something else': (file) => writeFileSync(file, 'this is no database, and never was one'.repeat(200)),
  };
  for (const [title, damage] of Object.entries(damages)) {
    test(title, () => {
      withFile((file) => {
        fill(file);
        damage(file);
        const size = statSync(file).size;
        withStore({ file, now: () => Date.parse('2026-11-21T10:00:00Z') }, (store, recovery) => {
          assert.ok(recovery, 'it was said');
          assert.equal(recovery.movedTo, `${file}.damaged-2026-11-21T10-00-00-000Z`);
          assert.equal(statSync(recovery.movedTo).size, size, 'nothing of it is lost');
          assert.notEqual(recovery.reason, '');
          assert.equal(store.revision, 0);
          assert.ok(put(store, 'a', '1'));
        });
        withStore({ file }, (store, recovery) => {
          assert.equal(recovery, undefined);
          assert.equal(store.get(THINGS, '', 'a')?.['value'], '1');
        });
      });
    });
  }

  test('not where that is not wanted', () => {
    withFile((file) => {
      fill(file);
      overwrite(file, 0, 100);
      const bytes = readFileSync(file);
      assert.throws(() => SqliteJournal.open({ file, isRecovering: false }), { code: 'database-corrupt' });
      assert.deepEqual(readFileSync(file), bytes, 'it is as it was');
    });
  });

  test('an empty file is a new cluster', () => {
    withFile((file) => {
      writeFileSync(file, '');
      withStore({ file }, (store, recovery) => {
        assert.equal(recovery, undefined);
        assert.equal(store.revision, 0);
      });
    });
  });
});

test('a full disk refuses writes, changes nothing, and works again when there is space', () => {
  withFile((file) => {
    withStore({ file, maxPages: 40 }, (store) => {
      let count = 0;
      const write = (): void => {
        for (; count < 1_000; count++) {
          put(store, `thing-${count}`, 'x'.repeat(9_000));
        }
      };
      assert.throws(write, { code: 500, reason: 'InternalError', message: /nothing was changed.*make room/ });
      assert.ok(count > 0 && count < 40);
      const revision = store.revision;
      assert.equal(revision, count);
      assert.equal(store.get(THINGS, '', `thing-${count}`), undefined);
      assert.equal(store.collection(THINGS).size, count, 'what is there can be read');
      for (const expected of Array.from(store.collection(THINGS).list()).slice(0, 3)) {
        assert.ok(store.commit([{ type: 'remove', collection: THINGS, expected }]));
      }
      assert.equal(put(store, 'later', 'x'.repeat(9_000))?.metadata.resourceVersion, String(revision + 4));
    });
    withStore({ file }, (store, recovery) => {
      assert.equal(recovery, undefined);
      assert.ok(store.get(THINGS, '', 'later'));
      assert.ok(!existsSync(`${file}.damaged`));
    });
  });
});

test('of several changes that do not all fit, none is written', () => {
  withFile((file) => {
    withStore({ file, maxPages: 40 }, (store) => {
      const thing = (name: string) => ({
        type: 'put' as const,
        collection: THINGS,
        object: { apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name }, value: 'x'.repeat(9_000) },
        expected: undefined,
      });
      assert.ok(put(store, 'before', '1'));
      const many = Array.from({ length: 40 }, (_, index) => thing(`thing-${index}`));
      assert.throws(() => store.commit(many), { code: 500, message: /nothing was changed/ });
      assert.equal(store.revision, 1);
      assert.equal(store.collection(THINGS).size, 1);
      assert.equal(store.commit([thing('a'), thing('b')])?.[1]?.metadata.resourceVersion, '3');
    });
    withStore({ file }, (store) => {
      assert.deepEqual(
        Array.from(store.collection(THINGS).list(), ({ metadata }) => metadata.name),
        ['a', 'b', 'before'],
      );
      assert.equal(store.revision, 3);
    });
  });
});

test('the size of the write-ahead log is limited', () => {
  withFile((file) => {
    withStore({ file }, (store) => {
      let largest = 0;
      for (let count = 0; count < 4_000; count++) {
        put(store, `thing-${count % 10}`, 'x'.repeat(4_000));
        largest = Math.max(largest, count % 100 === 0 ? statSync(`${file}-wal`).size : 0);
      }
      // 16 MB of changes; SQLite checkpoints the write-ahead log every 1,000 pages of 4 KiB.
      assert.ok(largest < 6 * 1024 ** 2, `${largest} bytes`);
      assert.ok(statSync(file).size < 1024 ** 2);
    });
  });
});

function overwrite(file: string, start: number, length: number): void {
  const handle = openSync(file, 'r+');
  writeSync(handle, Buffer.alloc(length, 0xa5), 0, length, start);
  closeSync(handle);
}
