import { createHash, randomUUID, webcrypto } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { evict, TEMPORARY_PREFIX } from './cache-eviction.ts';
import { ModuleError, systemCode } from '../reference/errors.ts';
import { type Digest, isDigest } from '../reference/digest.ts';
import type { ModuleReference } from '../reference/module-reference.ts';
import { TaskLimit } from './task-limit.ts';
import { parseJson } from '../../values/index.ts';

/** Size of the cache: some 300 modules of usual size, or 50 built with Go. */
const DEFAULT_MAX_CACHE_BYTES = 1024 * 1024 * 1024;
/** The cache is bounded each time that this share of its size was written. */
const WRITTEN_SHARE = 1 / 16;
/** What a record counts: a block of the disk. Bytes. */
const RECORD_BYTES = 4096;
/** Uses of an entry within this time count once, because each use writes to the disk. Milliseconds. */
const USE_INTERVAL_MS = 5 * 60 * 1000;

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

/** A module in the cache, by a location that served it. */
export interface CachedModule {
  /** The location as it may be shown. */
  readonly shown: string;
  readonly digest: Digest;
  /** Of a module from a registry: the digest of its manifest. */
  readonly manifest?: Digest;
  /** Bytes. */
  readonly size: number;
  /** When the location first served it, in ISO 8601. */
  readonly fetchedAt: string;
}

/** The same in a thread of the pool: hashing the largest modules takes a tenth of a second. */
async function digestInPool(bytes: Uint8Array<ArrayBuffer>): Promise<Digest> {
  return `sha256:${Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('hex')}`;
}

/** Modules that are read at the same time, because each may have 64 MiB. */
const MAX_READS = 4;

/** A verification that held: the artifact's signatures satisfied it, and its manifest names the module. */
export interface VerifiedModule {
  /** Of the verification. */
  readonly id: Digest;
  readonly manifest: Digest;
  readonly module: Digest;
}

interface ModuleCacheOptions {
  /** Entries larger than this count as absent. */
  readonly maxModuleBytes: number;
  /** Size beyond which modules are evicted. Default: `DEFAULT_MAX_CACHE_BYTES`. */
  readonly maxBytes?: number;
}

/**
 * Modules on disk by their digest, and the digest that each location served last. Files are replaced by renaming, so that
 * processes can share a folder, and a crash leaves only complete files. The least recently used modules are evicted, but none
 * that serves in a process that shares the folder. The time of a file's last change is that of its last use.
 *
 *     sha256/<hex>.wasm     modules
 *     corrupt/<hex>.wasm    modules whose bytes no longer matched their digest, for inspection
 *     locations/<hex>.json  last digest by location; named by the hash of the location, which may hold secrets
 *     verified/<hex>.json   what was verified; named by the hash of the content
 *     serving/<uuid>.json   digests of the modules that serve in a process, see `ModulesInUse`
 */
export class ModuleCache {
  readonly #dir: string;
  readonly #maxModuleBytes: number;
  readonly #maxBytes: number;
  readonly #reads = new TaskLimit(MAX_READS);
  /** Written since the cache was bounded last. A new process bounds it at once, because many processes write little. */
  #writtenBytes = Infinity;

  /** Creates the folder at the first write. */
  constructor(dir: string, { maxModuleBytes, maxBytes = DEFAULT_MAX_CACHE_BYTES }: ModuleCacheOptions) {
    this.#dir = dir;
    this.#maxModuleBytes = maxModuleBytes;
    this.#maxBytes = maxBytes;
  }

  /**
   * The module with this digest, verified; undefined when it is missing, or was corrupt and is moved to `corrupt/`.
   * @throws ModuleError `cache-failed`
   */
  async read(digest: Digest): Promise<Uint8Array | undefined> {
    return await this.#reads.run(() => this.#read(digest));
  }

  async #read(digest: Digest): Promise<Uint8Array | undefined> {
    const path = this.#modulePath(digest);
    try {
      const { size, mtimeMs } = await stat(path);
      if (size > this.#maxModuleBytes) {
        return undefined;
      }
      // Before it is read, so that no other process evicts it meanwhile.
      await markUsed(path, mtimeMs);
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

  /** Whether a module was corrupt and is in `corrupt/`. */
  async wasCorrupt(digest: Digest): Promise<boolean> {
    return await stat(this.#corruptPath(digest)).then(
      () => true,
      () => false,
    );
  }

  /** Stores a module. @throws ModuleError `cache-failed` */
  async write(digest: Digest, bytes: Uint8Array): Promise<void> {
    if ((await this.read(digest)) === undefined) {
      await this.#writeFile(this.#modulePath(digest), bytes);
      await this.#wrote(bytes.length);
    }
  }

  /** Bounds the cache when enough was written. */
  async #wrote(bytes: number): Promise<void> {
    this.#writtenBytes += bytes;
    if (this.#writtenBytes > this.#maxBytes * WRITTEN_SHARE) {
      this.#writtenBytes = 0;
      await evict(this.#dir, this.#maxBytes);
    }
  }

  /** The module that a location served last; undefined when unknown. @throws ModuleError `cache-failed` */
  async locate(reference: ModuleReference): Promise<KnownLocation | undefined> {
    const path = this.#locationPath(reference);
    try {
      const [text, { mtimeMs }] = await Promise.all([readFile(path, 'utf8'), stat(path)]);
      await markUsed(path, mtimeMs);
      return knownLocation(text);
    } catch (error) {
      return absentOr(error, `read ${path}`);
    }
  }

  /** Records the module that a location serves now. @throws ModuleError `cache-failed` */
  async remember(reference: ModuleReference, digest: Digest, manifest?: Digest): Promise<void> {
    const last = await this.locate(reference);
    if (last?.digest === digest && last.manifest === manifest) {
      return;
    }
    const known: KnownLocation = {
      digest,
      ...(manifest === undefined ? {} : { manifest }),
      shown: reference.shown,
      fetchedAt: new Date().toISOString(),
    };
    await this.#writeFile(this.#locationPath(reference), Buffer.from(`${JSON.stringify(known)}\n`));
    await this.#wrote(RECORD_BYTES);
  }

  /** Whether a verification is recorded. @throws ModuleError `cache-failed` */
  async isVerified(verified: VerifiedModule): Promise<boolean> {
    const { path, text } = this.#record(verified);
    try {
      const [found, { mtimeMs }] = await Promise.all([readFile(path, 'utf8'), stat(path)]);
      await markUsed(path, mtimeMs);
      return found === text;
    } catch (error) {
      absentOr(error, `read ${path}`);
      return false;
    }
  }

  /** Records that a verification held. @throws ModuleError `cache-failed` */
  async recordVerified(verified: VerifiedModule): Promise<void> {
    const { path, text } = this.#record(verified);
    await this.#writeFile(path, Buffer.from(text));
    await this.#wrote(RECORD_BYTES);
  }

  #record({ id, manifest, module }: VerifiedModule): { readonly path: string; readonly text: string } {
    const text = `${JSON.stringify({ id, manifest, module })}\n`;
    const name = createHash('sha256').update(text).digest('hex');
    return { path: join(this.#dir, 'verified', `${name}.json`), text };
  }

  /** The modules with the locations that served them last, by location. Locations of evicted modules are left out. */
  async list(): Promise<readonly CachedModule[]> {
    const modules = new Map<string, CachedModule>();
    for (const { known } of await this.#locations()) {
      const size = await stat(this.#modulePath(known.digest)).then(
        (status) => status.size,
        () => undefined,
      );
      if (size !== undefined) {
        // A tag and the digest that it had are two locations.
        modules.set(`${known.shown} ${known.digest}`, { ...known, size });
      }
    }
    return [...modules.values()].toSorted((a, b) => (a.shown < b.shown ? -1 : 1));
  }

  /** Forgets the locations that served modules; modules that no other location served are removed. */
  async remove(isRemoved: (module: Omit<CachedModule, 'size'>) => boolean): Promise<void> {
    const locations = await this.#locations();
    const removed = locations.filter(({ known }) => isRemoved(known));
    const kept = new Set(locations.filter(({ known }) => !isRemoved(known)).map(({ known }) => known.digest));
    const digests = new Set(removed.map(({ known }) => known.digest).filter((digest) => !kept.has(digest)));
    for (const path of [
      ...removed.map((location) => location.path),
      ...[...digests].map((digest) => this.#modulePath(digest)),
    ]) {
      await rm(path, { force: true }).catch((error: unknown) => Promise.reject(cacheFailed(`remove ${path}`, error)));
    }
  }

  async #locations(): Promise<readonly { readonly path: string; readonly known: KnownLocation }[]> {
    const folder = join(this.#dir, 'locations');
    const found: { path: string; known: KnownLocation }[] = [];
    for (const name of await readdir(folder).catch(() => [])) {
      const path = join(folder, name);
      const text = name.endsWith('.json') ? await readFile(path, 'utf8').catch(() => '') : '';
      const known = knownLocation(text);
      if (known !== undefined) {
        found.push({ path, known });
      }
    }
    return found;
  }

  #modulePath(digest: Digest): string {
    return join(this.#dir, 'sha256', `${digest.slice('sha256:'.length)}.wasm`);
  }

  #locationPath(reference: ModuleReference): string {
    const name = createHash('sha256').update(reference.key).digest('hex');
    return join(this.#dir, 'locations', `${name}.json`);
  }

  #corruptPath(digest: Digest): string {
    return join(this.#dir, 'corrupt', `${digest.slice('sha256:'.length)}.wasm`);
  }

  async #setAside(digest: Digest): Promise<void> {
    const place = this.#corruptPath(digest);
    await mkdir(dirname(place), { recursive: true, mode: 0o700 });
    await rename(this.#modulePath(digest), place);
  }

  async #writeFile(path: string, bytes: Uint8Array): Promise<void> {
    try {
      await replaceFile(path, bytes).catch(async (error: unknown) => {
        if (!DISK_FULL.has(systemCode(error) ?? '')) {
          throw error;
        }
        await evict(this.#dir, this.#maxBytes, true);
        await replaceFile(path, bytes);
      });
    } catch (error) {
      throw cacheFailed(`write ${path}`, error);
    }
  }
}

/** Codes of errors that go away when files are removed. */
const DISK_FULL: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT']);

/** Replaces a file as a whole, or leaves it as it is. */
async function replaceFile(path: string, bytes: Uint8Array): Promise<void> {
  const folder = dirname(path);
  const temporary = join(folder, `${TEMPORARY_PREFIX}${randomUUID()}`);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeDurably(temporary, bytes);
    await rename(temporary, path);
    await syncFolder(folder);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** Records a use of a file. A folder that can only be read serves as well. */
async function markUsed(path: string, usedMs: number): Promise<void> {
  const now = new Date();
  if (Math.abs(now.getTime() - usedMs) > USE_INTERVAL_MS) {
    await utimes(path, now, now).catch(() => undefined);
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
