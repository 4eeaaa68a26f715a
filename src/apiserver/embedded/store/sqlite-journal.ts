// Stores objects in an SQLite file in WAL mode. Each row has a checksum, because SQLite does not detect changed bytes of texts.
import { closeSync, existsSync, mkdirSync, openSync, renameSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { StatementSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { ApiError, ClusterError } from '../../../cluster/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import { errorText, parseJson } from '../../../values/index.ts';
import type { Journal, JournalContents, JournalEntry } from './journal.ts';

/** `PORT` in ASCII, the application ID in our files. Databases with another one are not changed. */
const APPLICATION_ID = 0x504f5254;

/** Version of the tables below. */
const SCHEMA_VERSION = 1;

const SCHEMA = `
  CREATE TABLE objects (
    id INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (collection, namespace, name)
  );
  CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
  PRAGMA application_id = ${APPLICATION_ID};
  PRAGMA user_version = ${SCHEMA_VERSION};
`;

/** Primary result codes of SQLite. */
const SQLITE_BUSY = 5;
const SQLITE_CORRUPT = 11;
const SQLITE_FULL = 13;
const SQLITE_NOTADB = 26;

/** An extended result code of SQLite: the file is truncated. */
const SQLITE_IOERR_SHORT_READ = 522;

/** How a damaged file was replaced. */
export interface Recovery {
  readonly file: string;
  /** New path of the damaged file; undefined when it was empty. */
  readonly movedTo: string | undefined;
  /** The damage that was found. */
  readonly reason: string;
}

export interface SqliteJournalOptions {
  readonly file: string;
  /**
   * `normal` (default): acknowledged writes survive a crash of the process. A power failure may lose the newest ones, but does
   * not corrupt the file. `full`: they also survive a power failure, at about a tenth of the speed.
   */
  readonly durability?: 'normal' | 'full';
  /** Whether to rename a damaged file and create an empty one. If false, a damaged file is an error. Default: true. */
  readonly isRecovering?: boolean;
  /** Called after a damaged file was renamed. */
  readonly onRecovery?: (recovery: Recovery) => void;
  /** Maximum size of the file, in pages of 4 KiB. Default: SQLite's own limit. */
  readonly maxPages?: number;
  /** Milliseconds since 1970. Default: the system's clock. */
  readonly now?: () => number;
}

/** A file that Portcullis wrote is damaged. */
class DatabaseDamagedError extends Error {
  override readonly name = 'DatabaseDamagedError';
}

export class SqliteJournal implements Journal {
  readonly #file: string;
  readonly #database: DatabaseSync;
  readonly #contents: JournalContents;
  readonly #put: StatementSync;
  readonly #remove: StatementSync;
  readonly #readSetting: StatementSync;
  readonly #writeSetting: StatementSync;

  private constructor(file: string, database: DatabaseSync, contents: JournalContents) {
    this.#file = file;
    this.#database = database;
    this.#contents = contents;
    this.#put = database.prepare(
      `INSERT INTO objects (collection, namespace, name, revision, checksum, body) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (collection, namespace, name)
       DO UPDATE SET revision = excluded.revision, checksum = excluded.checksum, body = excluded.body`,
    );
    this.#remove = database.prepare('DELETE FROM objects WHERE collection = ? AND namespace = ? AND name = ?');
    this.#readSetting = database.prepare('SELECT value FROM settings WHERE name = ?');
    this.#writeSetting = database.prepare(
      'INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value',
    );
  }

  /**
   * Opens the file, or creates it. By default, a damaged file is renamed and an empty one created.
   *
   * @throws ClusterError `database-unavailable` when it cannot be opened, is in use, or was not written by Portcullis;
   *   `database-corrupt` when it is damaged and `isRecovering` is false.
   */
  static open(options: SqliteJournalOptions): SqliteJournal {
    const file = resolve(options.file);
    try {
      return SqliteJournal.#attempt(file, options);
    } catch (error) {
      if (!(error instanceof DatabaseDamagedError)) {
        throw error;
      }
      if (options.isRecovering === false) {
        throw new ClusterError(
          'database-corrupt',
          `the cluster's file ${file} is damaged: ${error.message}; restore it from a backup, or rename it to start with an empty cluster`,
          { cause: error },
        );
      }
      const movedTo = renameDamaged(file, (options.now ?? Date.now)());
      options.onRecovery?.({ file, movedTo, reason: error.message });
      return SqliteJournal.#attempt(file, options);
    }
  }

  static #attempt(file: string, options: SqliteJournalOptions): SqliteJournal {
    let database: DatabaseSync | undefined;
    try {
      createPrivate(file);
      database = new DatabaseSync(file);
      configure(database, options);
      prepareSchema(file, database);
      const contents = load(database);
      return new SqliteJournal(file, database, contents);
    } catch (error) {
      database?.close();
      throw openingError(file, error);
    }
  }

  load(): JournalContents {
    return this.#contents;
  }

  append(entries: readonly JournalEntry[]): void {
    const [only] = entries;
    try {
      if (entries.length === 1 && only?.text !== undefined) {
        // A single statement is its own transaction.
        this.#write(only);
        return;
      }
      this.#database.exec('BEGIN IMMEDIATE');
      for (const entry of entries) {
        this.#write(entry);
      }
      // Without this setting, the revision of a deletion would be lost: no row has it.
      this.#writeSetting.run('revision', String(entries.at(-1)?.revision ?? 0));
      this.#database.exec('COMMIT');
    } catch (error) {
      if (this.#database.isTransaction) {
        this.#database.exec('ROLLBACK');
      }
      throw this.#writingError(error);
    }
  }

  readSetting(name: string): string | undefined {
    const row = this.#readSetting.get(name);
    return row === undefined ? undefined : String(row['value']);
  }

  writeSetting(name: string, value: string): void {
    try {
      this.#writeSetting.run(name, value);
    } catch (error) {
      throw this.#writingError(error);
    }
  }

  close(): void {
    this.#database.close();
  }

  #write({ collection, namespace, name, revision, text }: JournalEntry): void {
    if (text === undefined) {
      this.#remove.run(collection, namespace, name);
    } else {
      this.#put.run(collection, namespace, name, revision, crc32(text), text);
    }
  }

  #writingError(error: unknown): ApiError {
    const why = codeOf(error) === SQLITE_FULL ? 'the disk is full, or the file may not grow' : errorText(error);
    return ApiError.internal(
      `nothing was changed, because ${this.#file} cannot be written: ${why}; make room there and try again`,
      error,
    );
  }
}

/**
 * Creates the file with mode 0600, because it contains Secrets. An existing file is not opened, because closing it would
 * release the POSIX locks that other connections of this process have.
 */
function createPrivate(file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  try {
    closeSync(openSync(file, 'ax', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw error;
    }
  }
}

function configure(database: DatabaseSync, { durability = 'normal', maxPages }: SqliteJournalOptions): void {
  // The file is locked from the first read until the database is closed.
  database.exec('PRAGMA locking_mode = EXCLUSIVE');
  database.exec('PRAGMA journal_mode = WAL');
  database.exec(`PRAGMA synchronous = ${durability === 'full' ? 'FULL' : 'NORMAL'}`);
  if (maxPages !== undefined) {
    database.exec(`PRAGMA max_page_count = ${maxPages}`);
  }
}

function prepareSchema(file: string, database: DatabaseSync): void {
  const applicationId = pragma(database, 'application_id');
  const version = pragma(database, 'user_version');
  const { count } = database.prepare('SELECT count(*) AS count FROM sqlite_schema').get() ?? {};
  if (count === 0 && applicationId === 0) {
    database.exec(`BEGIN IMMEDIATE; ${SCHEMA} COMMIT`);
    return;
  }
  if (applicationId !== APPLICATION_ID) {
    throw new ClusterError(
      'database-unavailable',
      `${file} is a database of another program: name another file for the cluster`,
    );
  }
  if (version !== SCHEMA_VERSION) {
    throw new ClusterError(
      'database-unavailable',
      `${file} was written by another version of this program: expected format ${SCHEMA_VERSION}, got ${String(version)}; use that version, or name another file`,
    );
  }
  // Acquires the lock although nothing is written.
  database.exec('BEGIN IMMEDIATE; COMMIT');
}

function pragma(database: DatabaseSync, name: string): unknown {
  return database.prepare(`PRAGMA ${name}`).get()?.[name];
}

/** Loads all rows, and verifies their checksums. */
function load(database: DatabaseSync): JournalContents {
  const check = database.prepare('PRAGMA quick_check(1)').get()?.['quick_check'];
  if (check !== 'ok') {
    throw new DatabaseDamagedError(String(check).trim());
  }
  const storedRevision = database.prepare("SELECT value FROM settings WHERE name = 'revision'").get()?.['value'];
  let revision = Number(storedRevision ?? 0);
  const objects: { collection: string; object: KubernetesObject }[] = [];
  const rows = database.prepare('SELECT collection, namespace, name, revision, checksum, body FROM objects').iterate();
  for (const row of rows) {
    const collection = String(row['collection']);
    const body = String(row['body']);
    if (crc32(body) !== row['checksum']) {
      throw new DatabaseDamagedError(
        `the object ${String(row['namespace'])}/${String(row['name'])} of ${collection} is not what was written`,
      );
    }
    objects.push({ collection, object: parseJson(body) as KubernetesObject });
    revision = Math.max(revision, Number(row['revision']));
  }
  return { revision, objects };
}

/** Renames the file and SQLite's auxiliary files. They are kept for analysis. */
function renameDamaged(file: string, now: number): string | undefined {
  const stamp = new Date(now).toISOString().replaceAll(/[:.]/gu, '-');
  const target = `${file}.damaged-${stamp}`;
  for (const suffix of ['', '-wal', '-shm']) {
    if (existsSync(file + suffix)) {
      renameSync(file + suffix, target + suffix);
    }
  }
  return existsSync(target) && statSync(target).size > 0 ? target : undefined;
}

function openingError(file: string, error: unknown): unknown {
  if (error instanceof ClusterError || error instanceof DatabaseDamagedError) {
    return error;
  }
  if ((error as { errcode?: unknown }).errcode === SQLITE_IOERR_SHORT_READ) {
    return new DatabaseDamagedError('it ends in the middle of a page');
  }
  switch (codeOf(error)) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return new DatabaseDamagedError(errorText(error));
    case SQLITE_BUSY:
      return unavailable(file, 'another process has it open: end that one, or name another file', error);
    case SQLITE_FULL:
      return unavailable(file, 'the disk is full: make room there', error);
    default:
      return unavailable(file, `${errorText(error)}: expected a file that can be read and written`, error);
  }
}

function unavailable(file: string, why: string, cause: unknown): ClusterError {
  return new ClusterError('database-unavailable', `the cluster's file ${file} cannot be opened: ${why}`, { cause });
}

/** The primary result code of an SQLite error. */
function codeOf(error: unknown): number | undefined {
  const { errcode } = error as { errcode?: unknown };
  return typeof errcode === 'number' ? errcode & 0xff : undefined;
}
