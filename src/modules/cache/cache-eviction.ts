import { randomUUID } from 'node:crypto';
import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { modulesInUse } from './modules-in-use.ts';

/** The beginning of the names of files that are being written. */
export const TEMPORARY_PREFIX = '.tmp-';

/** Age at which a temporary file is left over from a process that died: the largest module is written in seconds. */
const STALE_TEMPORARY_MS = 60 * 60 * 1000;
/**
 * Modules that were used within this time are evicted only if the cache has twice its size, or the disk is full: they may be
 * about to serve. Milliseconds.
 */
const FRESH_MS = 10 * 60 * 1000;
/** What a file counts at least, which bounds their number. Bytes. */
const MIN_ENTRY_BYTES = 64 * 1024;
/** Most corrupt modules that are kept for inspection. */
const MAX_CORRUPT = 8;
/** Most locations: some for each policy, with the tags that it had. Also most records of verifications. */
const MAX_LOCATIONS = 20_000;

interface Entry {
  readonly name: string;
  readonly path: string;
  readonly size: number;
  /** When it was written or used last. */
  readonly usedMs: number;
}

/**
 * Bounds a module cache. Removes the least recently used modules until the others fit in `maxBytes`, but none that serves in a
 * process that shares the folder; also surplus records and corrupt modules, and what writers that died left. Files that
 * cannot be removed are skipped. Never throws.
 * @param isDiskFull whether to halve the cache, however small it is
 */
export async function evict(cacheDir: string, maxBytes: number, isDiskFull = false): Promise<void> {
  const nowMs = await folderClock(cacheDir);
  const modules = await entriesOf(join(cacheDir, 'sha256'), nowMs);
  const total = modules.reduce((sum, { size }) => sum + Math.max(size, MIN_ENTRY_BYTES), 0);
  const limit = isDiskFull ? Math.min(maxBytes, total / 2) : maxBytes;
  if (total > limit) {
    const freshMs = isDiskFull || total > 2 * maxBytes ? 0 : FRESH_MS;
    const inUse = await modulesInUse(cacheDir, nowMs);
    await evictModules(modules, total - limit, { inUse, unusedSinceMs: nowMs - freshMs });
  }
  await keepNewest(await entriesOf(join(cacheDir, 'corrupt'), nowMs), MAX_CORRUPT);
  await keepNewest(await entriesOf(join(cacheDir, 'locations'), nowMs), MAX_LOCATIONS);
  await keepNewest(await entriesOf(join(cacheDir, 'verified'), nowMs), MAX_LOCATIONS);
}

async function evictModules(
  modules: readonly Entry[],
  surplusBytes: number,
  { inUse, unusedSinceMs }: { readonly inUse: ReadonlySet<string>; readonly unusedSinceMs: number },
): Promise<void> {
  let surplus = surplusBytes;
  for (const entry of modules.toSorted((a, b) => a.usedMs - b.usedMs)) {
    if (surplus <= 0 || entry.usedMs > unusedSinceMs) {
      return;
    }
    if (inUse.has(`sha256:${entry.name.slice(0, -'.wasm'.length)}`)) {
      continue;
    }
    // Another process may have used it since the folder was read.
    const now = await stat(entry.path).catch(() => undefined);
    if (now === undefined || now.mtimeMs === entry.usedMs) {
      await rm(entry.path, { force: true }).catch(() => undefined);
      surplus -= Math.max(entry.size, MIN_ENTRY_BYTES);
    }
  }
}

async function keepNewest(entries: readonly Entry[], count: number): Promise<void> {
  for (const { path } of entries.toSorted((a, b) => b.usedMs - a.usedMs).slice(count)) {
    await rm(path, { force: true }).catch(() => undefined);
  }
}

/** The files of a folder. Temporary ones count as well; those that are left over are removed. */
async function entriesOf(folder: string, nowMs: number): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    const status = await stat(path).catch(() => undefined);
    if (status === undefined) {
      continue;
    }
    if (name.startsWith(TEMPORARY_PREFIX) && nowMs - status.mtimeMs > STALE_TEMPORARY_MS) {
      await rm(path, { force: true }).catch(() => undefined);
    } else {
      entries.push({ name, path, size: status.size, usedMs: status.mtimeMs });
    }
  }
  return entries;
}

/**
 * The time of the clock that stamps the files, which in a shared folder is the file server's. If nothing can be written, the
 * time of this process.
 */
async function folderClock(cacheDir: string): Promise<number> {
  const path = join(cacheDir, `${TEMPORARY_PREFIX}${randomUUID()}`);
  try {
    await writeFile(path, '', { mode: 0o600 });
    return (await stat(path)).mtimeMs;
  } catch {
    return Date.now();
  } finally {
    await rm(path, { force: true }).catch(() => undefined);
  }
}
