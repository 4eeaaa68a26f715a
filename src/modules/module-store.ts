import { ModuleError } from './errors.ts';
import { readModuleFile } from './file-source.ts';
import { downloadModule } from './http-source.ts';
import type { FetchTimeouts } from './http-source.ts';
import { digestOf, ModuleCache } from './module-cache.ts';
import { parseReference } from './module-reference.ts';
import type { Digest, ModuleReference } from './module-reference.ts';
import { assertTenantFile } from './own-network.ts';
import { fetchFromPeers } from './peer-source.ts';
import type { PeerOutcome, PeerSource } from './peer-source.ts';
import { SharedTasks } from './shared-task.ts';
import { DEFAULT_SOURCES } from './sources.ts';
import type { SourcesConfig } from './sources.ts';

/** Largest module by default: policies built with Go's standard toolchain, the largest there are, have about 20 MiB. */
export const DEFAULT_MAX_MODULE_BYTES = 64 * 1024 * 1024;

/** Size that a cache is kept below: some 300 modules of a usual size, or 50 of the largest toolchain. */
const DEFAULT_MAX_CACHE_BYTES = 1024 * 1024 * 1024;

/** How a store works. */
interface ModuleStoreOptions {
  /** The folder of the cache; several processes may share it. */
  readonly cacheDir: string;
  /** How to reach servers. Default: `DEFAULT_SOURCES`. */
  readonly sources?: SourcesConfig;
  /** Default: `DEFAULT_MAX_MODULE_BYTES`. */
  readonly maxModuleBytes?: number;
  /** Size that `prune` leaves of the cache. Default: `DEFAULT_MAX_CACHE_BYTES`. */
  readonly maxCacheBytes?: number;
  /** Time for one download as a whole, in milliseconds. Default: `FETCH_TIMEOUT_MS`. */
  readonly fetchTimeoutMs?: number;
  /** Finer time limits; `fetchTimeoutMs` wins over their `totalMs`. */
  readonly timeouts?: FetchTimeouts;
  /** Absolute folder whose files tenants may have modules from. Default: none. */
  readonly tenantFolder?: string;
  /** Other processes that are asked for pinned modules before their source is. Default: none. */
  readonly peers?: PeerSource;
}

/** How to fetch one module. */
interface FetchOptions {
  readonly signal?: AbortSignal;
  /** Takes the module from the cache, whatever the source may have by now. Default: false. */
  readonly offline?: boolean;
  /**
   * The module is for somebody who does not run this machine: neither its files are read for them, except those of
   * `tenantFolder`, nor servers that only it can reach. Default: false.
   */
  readonly isForTenant?: boolean;
  /** Absolute folder for relative `file://` references that are given as text. */
  readonly baseDir?: string;
  /** Called as bytes arrive; not when the module comes from the cache. */
  readonly onProgress?: (received: number, total?: number) => void;
}

/** A module and where it came from. */
export interface FetchedModule {
  /** The location, as it may be shown. */
  readonly url: string;
  readonly digest: Digest;
  /** Shared with whoever fetched the same at the same time: not to be written to. */
  readonly bytes: Uint8Array;
  readonly origin: 'source' | 'cache' | 'peer';
  /** Why the source was not used, when the cache stands in for it. */
  readonly sourceError?: ModuleError;
  /** Why the module could not be kept for later; it can be used all the same. */
  readonly cacheError?: ModuleError;
}

interface Progress {
  readonly received: number;
  readonly total: number | undefined;
}

/** One transfer, and for whom it is. */
interface Transfer {
  readonly signal: AbortSignal;
  readonly isForTenant: boolean;
  readonly report: (progress: Progress) => void;
}

/**
 * Gets modules: from their source, verified and kept in the cache, or from the cache when the source is down. Pinned ones
 * also from peers, if there are any.
 */
export class ModuleStore {
  readonly #cache: ModuleCache;
  readonly #sources: SourcesConfig;
  readonly #maxBytes: number;
  readonly #maxCacheBytes: number;
  readonly #timeouts: FetchTimeouts;
  readonly #peers: PeerSource | undefined;
  readonly #tenantFolder: string | undefined;
  readonly #tasks = new SharedTasks<FetchedModule, Progress>();

  constructor(options: ModuleStoreOptions) {
    const { fetchTimeoutMs } = options;
    this.#maxBytes = options.maxModuleBytes ?? DEFAULT_MAX_MODULE_BYTES;
    this.#maxCacheBytes = options.maxCacheBytes ?? DEFAULT_MAX_CACHE_BYTES;
    this.#cache = new ModuleCache(options.cacheDir, this.#maxBytes);
    this.#sources = options.sources ?? DEFAULT_SOURCES;
    this.#peers = options.peers;
    this.#tenantFolder = options.tenantFolder;
    this.#timeouts = { ...options.timeouts, ...(fetchTimeoutMs === undefined ? {} : { totalMs: fetchTimeoutMs }) };
  }

  /**
   * The module that a reference names. A pinned module that is in the cache, or that a peer has, needs no source. Otherwise
   * the source is asked; when it fails, the last module that it served stands in, with `sourceError` saying so. Callers that ask for
   * the same at the same time share one download.
   * @throws ModuleError any code but `metadata-…`, `protocol-…`, `version-…`, `execution-…`; the signal's reason
   */
  async fetch(reference: string | ModuleReference, options: FetchOptions = {}): Promise<FetchedModule> {
    const { signal, offline = false, isForTenant = false, baseDir, onProgress } = options;
    const parsed =
      typeof reference === 'string' ? parseReference(reference, baseDir === undefined ? {} : { baseDir }) : reference;
    const credentials = parsed.kind === 'http' ? `${parsed.url.username}:${parsed.url.password}` : '';
    const key = JSON.stringify([parsed.key, credentials, parsed.digest, offline, isForTenant]);
    return await this.#tasks.run(
      key,
      async (shared, report) =>
        offline ? await this.#fromCache(parsed) : await this.#resolve(parsed, { signal: shared, isForTenant, report }),
      {
        ...(signal === undefined ? {} : { signal }),
        ...(onProgress === undefined ? {} : { onProgress: ({ received, total }) => onProgress(received, total) }),
      },
    );
  }

  /** Brings the cache below its size by removing the oldest modules, but none whose digest is in `keep`. */
  async prune(keep: ReadonlySet<string>): Promise<void> {
    await this.#cache.prune(keep, this.#maxCacheBytes);
  }

  async #fromCache(reference: ModuleReference): Promise<FetchedModule> {
    const known = await this.#lastKnown(reference);
    if (known === undefined) {
      throw new ModuleError(
        'not-cached',
        `${reference.shown} is not in the cache, and fetching is off: fetch it once while its source can be reached`,
      );
    }
    return known;
  }

  async #resolve(reference: ModuleReference, transfer: Transfer): Promise<FetchedModule> {
    const pinned = reference.digest === undefined ? undefined : await this.#lastKnown(reference).catch(() => undefined);
    if (pinned !== undefined) {
      return pinned;
    }
    const asked = await this.#fromPeers(reference, transfer.signal);
    if (asked.bytes !== undefined) {
      return await this.#fetched(reference, asked.bytes, 'peer');
    }
    let bytes: Uint8Array;
    try {
      bytes = await this.#fromSource(reference, transfer);
    } catch (failure) {
      if (!(failure instanceof ModuleError)) {
        throw failure;
      }
      const error = withDetail(failure, asked.detail);
      // A broken cache must not hide what is wrong with the source.
      const known = await this.#lastKnown(reference).catch(() => undefined);
      if (known === undefined) {
        throw error;
      }
      return { ...known, sourceError: error };
    }
    return await this.#fetched(reference, bytes, 'source');
  }

  async #fromPeers(reference: ModuleReference, signal: AbortSignal): Promise<PeerOutcome> {
    if (this.#peers === undefined || reference.digest === undefined) {
      return { bytes: undefined, detail: undefined };
    }
    const outcome = await fetchFromPeers(this.#peers, reference.digest, this.#maxBytes, signal);
    signal.throwIfAborted();
    return outcome;
  }

  /** Verifies and keeps what was got. */
  async #fetched(reference: ModuleReference, bytes: Uint8Array, origin: 'source' | 'peer'): Promise<FetchedModule> {
    const digest = verifiedDigest(reference, bytes);
    const cacheError = await this.#keep(reference, digest, bytes);
    return { url: reference.shown, digest, bytes, origin, ...(cacheError === undefined ? {} : { cacheError }) };
  }

  async #fromSource(reference: ModuleReference, { signal, isForTenant, report }: Transfer): Promise<Uint8Array> {
    if (reference.kind === 'file') {
      if (isForTenant) {
        assertTenantFile(reference, this.#tenantFolder);
      }
      return await readModuleFile(reference, this.#maxBytes);
    }
    return await downloadModule(reference, {
      sources: this.#sources,
      maxBytes: this.#maxBytes,
      timeouts: this.#timeouts,
      signal,
      isForTenant,
      onProgress: (received, total) => report({ received, total }),
    });
  }

  /** The pinned module, or the last that the location served, if the cache has it. */
  async #lastKnown(reference: ModuleReference): Promise<FetchedModule | undefined> {
    const digest = reference.digest ?? (await this.#cache.locate(reference))?.digest;
    const bytes = digest === undefined ? undefined : await this.#cache.read(digest);
    return digest === undefined || bytes === undefined
      ? undefined
      : { url: reference.shown, digest, bytes, origin: 'cache' };
  }

  async #keep(reference: ModuleReference, digest: Digest, bytes: Uint8Array): Promise<ModuleError | undefined> {
    try {
      await this.#cache.write(digest, bytes);
      await this.#cache.remember(reference, digest);
      return undefined;
    } catch (error) {
      if (error instanceof ModuleError) {
        return error;
      }
      throw error;
    }
  }
}

/** The same error, with what became of asking peers. */
function withDetail(error: ModuleError, detail: string | undefined): ModuleError {
  return detail === undefined ? error : new ModuleError(error.code, `${error.message} (${detail})`, { cause: error });
}

function verifiedDigest(reference: ModuleReference, bytes: Uint8Array): Digest {
  const digest = digestOf(bytes);
  if (reference.digest !== undefined && reference.digest !== digest) {
    throw new ModuleError(
      'digest-mismatch',
      `${reference.shown} is not the pinned module: expected ${reference.digest}, got ${digest}. ` +
        'If the new one is trusted, change the digest of the reference',
    );
  }
  return digest;
}
