// Which modules serve, for all processes that share a cache. Each process writes its modules to a file of its own in `serving/`
// and writes it again at an interval, so that no process has to know whether another one still runs.
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';

import { parseJson } from '../../values/index.ts';
import { type Digest, isDigest } from '../reference/digest.ts';

const FOLDER = 'serving';
const TEMPORARY_SUFFIX = '.tmp';
/** Interval at which a process writes its file again. Milliseconds. */
const REFRESH_MS = 10 * 60 * 1000;
/**
 * Age at which a file no longer counts: long enough that a server finds its modules after days without power. Milliseconds.
 */
const LIFETIME_MS = 7 * 24 * 60 * 60 * 1000;
/** Most files that count, the newest ones: a process that is restarted all the time leaves one each time. */
const MAX_FILES = 256;
/** Largest file: 16,000 digests. Bytes. */
const MAX_FILE_BYTES = 1024 * 1024;

/** The modules that serve in this process, recorded for other processes that share the cache. */
export class ModulesInUse {
  readonly #folder: string;
  readonly #path: string;
  readonly #refresh: NodeJS.Timeout;
  #digests: readonly Digest[] | undefined;
  /** One write at a time, so that an older list never replaces a newer one. */
  #writing: Promise<void> = Promise.resolve();

  /** @param cacheDir folder of the cache; created at the first {@link set} */
  constructor(cacheDir: string) {
    this.#folder = join(cacheDir, FOLDER);
    this.#path = join(this.#folder, `${randomUUID()}.json`);
    this.#refresh = setInterval(() => this.#write(), REFRESH_MS);
    this.#refresh.unref();
  }

  /** Sets the modules that serve. What is no digest, such as the version of a builtin module, is ignored. */
  set(digests: readonly string[]): void {
    const before = this.#digests;
    this.#digests = digests.filter((digest) => isDigest(digest));
    // Most changes of policies serve the same modules.
    if (!isDeepStrictEqual(this.#digests, before)) {
      this.#write();
    }
  }

  /** Stops the interval. The file stays, so that the modules are there when the process is started again. */
  async stop(): Promise<void> {
    clearInterval(this.#refresh);
    await this.#writing;
  }

  #write(): void {
    // A folder that cannot be written keeps no modules either, and the loader reports that.
    this.#writing = this.#writing.then(() => this.#writeNow()).catch(() => undefined);
  }

  async #writeNow(): Promise<void> {
    const digests = this.#digests;
    if (digests === undefined) {
      return;
    }
    const temporary = `${this.#path}${TEMPORARY_SUFFIX}`;
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    await writeFile(temporary, JSON.stringify(digests), { mode: 0o600 });
    await rename(temporary, this.#path);
  }
}

/**
 * The modules that serve in any process that shares the cache. Removes the files of processes that ended long ago.
 * @param nowMs the time by the clock of the file system
 */
export async function modulesInUse(cacheDir: string, nowMs: number): Promise<ReadonlySet<string>> {
  const folder = join(cacheDir, FOLDER);
  const names = await readdir(folder).catch(() => []);
  const files: { readonly path: string; readonly size: number; readonly writtenMs: number }[] = [];
  for (const path of names.map((name) => join(folder, name))) {
    const status = await stat(path).catch(() => undefined);
    if (status !== undefined) {
      files.push({ path, size: status.size, writtenMs: status.mtimeMs });
    }
  }
  const digests = new Set<string>();
  for (const [index, { path, size, writtenMs }] of files.toSorted((a, b) => b.writtenMs - a.writtenMs).entries()) {
    if (index >= MAX_FILES || nowMs - writtenMs > LIFETIME_MS) {
      await rm(path, { force: true }).catch(() => undefined);
    } else if (size <= MAX_FILE_BYTES && !path.endsWith(TEMPORARY_SUFFIX)) {
      for (const digest of await readDigests(path)) {
        digests.add(digest);
      }
    }
  }
  return digests;
}

/** None for a file that is malformed or gone. */
async function readDigests(path: string): Promise<readonly string[]> {
  try {
    const value = parseJson(await readFile(path, 'utf8'));
    return Array.isArray(value) ? value.filter((digest) => isDigest(digest)) : [];
  } catch {
    return [];
  }
}
