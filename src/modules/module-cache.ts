import { createHash, randomUUID, webcrypto } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { ModuleError, systemCode } from './errors.ts';
import { type Digest, isDigest } from './digest.ts';
import type { ModuleReference } from './module-reference.ts';
import { parseJson } from '../values/index.ts';

/** Age at which a temporary file is left over from a process that died. */
const STALE_TEMPORARY_MS = 24 * 60 * 60 * 1000;
const TEMPORARY_PREFIX = '.tmp-';

/** The module that a location served last. */
interface KnownLocation {
  readonly digest: Digest;
  /** Of a module from a registry: the digest of its manifest. */
  readonly manifest?: Digest;
  /** The location as it may be shown. */
  readonly shown: string;
  /** When it was fetched, in ISO 8601. */
  readonly fetchedAt: string;
}

/** The same in a thread of the pool: hashing the largest modules takes a tenth of a second. */
async function digestInPool(bytes: Uint8Array<ArrayBuffer>): Promise<Digest> {
  return `sha256:${Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('hex')}`;
}

/**
 * Modules on disk by their digest, and the digest that each location served last. Files are replaced by renaming, so that
 * processes can share a folder, and a crash leaves only complete files.
 *
 *     sha256/<hex>.wasm     modules
 *     corrupt/<hex>.wasm    modules whose bytes no longer matched their digest, for inspection
 *     locations/<hex>.json  last digest by location; named by the hash of the location, which may hold secrets
 */
export class ModuleCache {
  readonly #dir: string;
  readonly #maxBytes: number;
  #swept: Promise<void> | undefined;

  /** Creates the folder at the first write. Entries larger than `maxBytes` count as absent. */
  constructor(dir: string, maxBytes: number) {
    this.#dir = dir;
    this.#maxBytes = maxBytes;
  }

  /**
   * The module with this digest, verified; undefined when it is missing, or was corrupt and is moved to `corrupt/`.
   * @throws ModuleError `cache-failed`
   */
  async read(digest: Digest): Promise<Uint8Array | undefined> {
    const path = this.#modulePath(digest);
    try {
      const { size } = await stat(path);
      if (size > this.#maxBytes) {
        return undefined;
      }
      const bytes = await readFile(path);
      if ((await digestInPool(bytes)) === digest) {
        return bytes;
      }
      await this.#setAside(digest);
      return undefined;
    } catch (error) {
      return absentOr(error, `read ${path}`);
    }
  }

  /** Stores a module. @throws ModuleError `cache-failed` */
  async write(digest: Digest, bytes: Uint8Array): Promise<void> {
    if ((await this.read(digest)) === undefined) {
      await this.#writeFile(this.#modulePath(digest), bytes);
    }
  }

  /** The module that a location served last; undefined when unknown. @throws ModuleError `cache-failed` */
  async locate(reference: ModuleReference): Promise<KnownLocation | undefined> {
    const path = this.#locationPath(reference);
    try {
      return knownLocation(await readFile(path, 'utf8'));
    } catch (error) {
      return absentOr(error, `read ${path}`);
    }
  }

  /** Records the module that a location serves now. @throws ModuleError `cache-failed` */
  async remember(reference: ModuleReference, digest: Digest, manifest?: Digest): Promise<void> {
    const known: KnownLocation = {
      digest,
      ...(manifest === undefined ? {} : { manifest }),
      shown: reference.shown,
      fetchedAt: new Date().toISOString(),
    };
    await this.#writeFile(this.#locationPath(reference), Buffer.from(`${JSON.stringify(known)}\n`));
  }

  /**
   * Removes the oldest modules until the rest fits in `limitBytes`; never those in `keep`. Files that cannot be removed
   * are skipped.
   */
  async prune(keep: ReadonlySet<string>, limitBytes: number): Promise<void> {
    const folder = join(this.#dir, 'sha256');
    const names = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.wasm'));
    const entries: { path: string; size: number; writtenMs: number }[] = [];
    let total = 0;
    for (const name of names) {
      const path = join(folder, name);
      const status = await stat(path).catch(() => undefined);
      if (status === undefined) {
        continue;
      }
      total += status.size;
      if (!keep.has(`sha256:${name.slice(0, -'.wasm'.length)}`)) {
        entries.push({ path, size: status.size, writtenMs: status.mtimeMs });
      }
    }
    for (const { path, size } of entries.toSorted((a, b) => a.writtenMs - b.writtenMs)) {
      if (total <= limitBytes) {
        return;
      }
      await rm(path, { force: true }).catch(() => undefined);
      total -= size;
    }
  }

  #modulePath(digest: Digest): string {
    return join(this.#dir, 'sha256', `${digest.slice('sha256:'.length)}.wasm`);
  }

  #locationPath(reference: ModuleReference): string {
    const name = createHash('sha256').update(reference.key).digest('hex');
    return join(this.#dir, 'locations', `${name}.json`);
  }

  async #setAside(digest: Digest): Promise<void> {
    const place = join(this.#dir, 'corrupt', `${digest.slice('sha256:'.length)}.wasm`);
    await mkdir(dirname(place), { recursive: true, mode: 0o700 });
    await rename(this.#modulePath(digest), place);
  }

  async #writeFile(path: string, bytes: Uint8Array): Promise<void> {
    const folder = dirname(path);
    const temporary = join(folder, `${TEMPORARY_PREFIX}${randomUUID()}`);
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await (this.#swept ??= this.#sweep());
      await writeDurably(temporary, bytes);
      await rename(temporary, path);
      await syncFolder(folder);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => undefined);
      throw cacheFailed(`write ${path}`, error);
    }
  }

  /** Removes the temporary files of processes that died, once per cache object. */
  async #sweep(): Promise<void> {
    for (const folder of ['sha256', 'locations'].map((name) => join(this.#dir, name))) {
      const names = await readdir(folder).catch(() => []);
      for (const path of names.filter((name) => name.startsWith(TEMPORARY_PREFIX)).map((name) => join(folder, name))) {
        const status = await stat(path).catch(() => undefined);
        if (status !== undefined && Date.now() - status.mtimeMs > STALE_TEMPORARY_MS) {
          await rm(path, { force: true }).catch(() => undefined);
        }
      }
    }
  }
}

async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  await using file = await open(path, 'wx', 0o600);
  await file.writeFile(bytes);
  await file.sync();
}

/** Makes a rename survive a power loss, where folders can be synced (not on Windows). */
async function syncFolder(folder: string): Promise<void> {
  try {
    await using handle = await open(folder, 'r');
    await handle.sync();
  } catch (error) {
    if (!['EISDIR', 'EPERM', 'EACCES', 'EINVAL'].includes(systemCode(error) ?? '')) {
      throw error;
    }
  }
}

/** Undefined for a malformed entry, which the next fetch replaces. */
function knownLocation(text: string): KnownLocation | undefined {
  try {
    const value = parseJson(text) as Partial<KnownLocation> | null;
    const { digest, manifest, shown, fetchedAt } = value ?? {};
    return isDigest(digest) && typeof shown === 'string' && typeof fetchedAt === 'string'
      ? { digest, ...(isDigest(manifest) ? { manifest } : {}), shown, fetchedAt }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Another process may remove or move a file at any time: then it is absent. */
function absentOr(error: unknown, action: string): undefined {
  if (systemCode(error) !== 'ENOENT') {
    throw cacheFailed(action, error);
  }
}

function cacheFailed(action: string, error: unknown): ModuleError {
  return new ModuleError(
    'cache-failed',
    `the module cache could not ${action} (${systemCode(error) ?? String(error)}): check the folder's permissions and free space`,
    { cause: error },
  );
}
