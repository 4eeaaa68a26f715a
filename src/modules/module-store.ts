import { ModuleError } from './errors.ts';
import { readModuleFile } from './file-source.ts';
import { downloadModule } from './http/http-source.ts';
import type { FetchTimeouts } from './http/time-limits.ts';
import { type Digest, digestOf } from './digest.ts';
import { ModuleCache } from './module-cache.ts';
import { pullModule } from './oci/registry-source.ts';
import type { Verification } from './verification.ts';
import { parseReference, withManifest } from './module-reference.ts';
import type { ModuleReference } from './module-reference.ts';
import { assertTenantFile } from './tenant-sources.ts';
import { fetchFromPeers } from './peer-source.ts';
import type { PeerOutcome, PeerSource } from './peer-source.ts';
import { SharedTasks } from './shared-task.ts';
import { DEFAULT_SOURCES } from './sources.ts';
import type { SourcesConfig } from './sources.ts';

/** Largest module by default: the largest policies, built with Go's standard toolchain, have about 20 MiB. */
export const DEFAULT_MAX_MODULE_BYTES = 64 * 1024 * 1024;

interface ModuleStoreOptions {
  /** The folder of the cache; several processes may share it. */
  readonly cacheDir: string;
  /** Certificate authorities and proxies. Default: `DEFAULT_SOURCES`. */
  readonly sources?: SourcesConfig;
  /** Default: `DEFAULT_MAX_MODULE_BYTES`. */
  readonly maxModuleBytes?: number;
  /** Size of the cache. Default: 1 GiB. */
  readonly maxCacheBytes?: number;
  /** Time for a whole download, in milliseconds. Default: `FETCH_TIMEOUT_MS`. */
  readonly fetchTimeoutMs?: number;
  /** Further timeouts; `fetchTimeoutMs` overrides their `totalMs`. */
  readonly timeouts?: FetchTimeouts;
  /** Absolute folder of the modules that namespaced policies may name by `file://`. Default: none. */
  readonly tenantFolder?: string;
  /** Replicas that are tried for pinned modules before the source. Default: none. */
  readonly peers?: PeerSource;
  /** Modules must have the signatures that it requires. Default: modules are not verified. */
  readonly verification?: Verification;
}

interface FetchOptions {
  readonly signal?: AbortSignal;
  /** Reads the cache only. Default: false. */
  readonly offline?: boolean;
  /**
   * For a namespaced policy: local files outside of `tenantFolder`, and hosts with addresses that are not
   * public, are refused, but for `tenantHosts` of the sources.
   * Default: false.
   */
  readonly isForTenant?: boolean;
  /** Absolute folder for relative `file://` references. */
  readonly baseDir?: string;
  /**
   * The id of the verification that held for this module, as another replica recorded it. Believed for references that name
   * the digest of the module.
   */
  readonly verifiedBy?: string;
  /** Called as bytes arrive; never for a module from the cache. */
  readonly onProgress?: (received: number, total?: number) => void;
}

/** A module and where it came from. */
export interface FetchedModule {
  /** The location without credentials. */
  readonly url: string;
  readonly digest: Digest;
  /** Of a module from a registry: the digest of the manifest that the reference resolved to. */
  readonly manifest?: Digest;
  /** Shared between concurrent callers: read only. */
  readonly bytes: Uint8Array;
  readonly origin: 'source' | 'cache' | 'peer';
  /** The id of the verification that holds for the module; undefined if modules are not verified. */
  readonly verifiedBy?: string;
  /** Why the source failed, when the module comes from the cache instead. */
  readonly sourceError?: ModuleError;
  /** Why the module could not be cached. */
  readonly cacheError?: ModuleError;
}

interface Progress {
  readonly received: number;
  readonly total: number | undefined;
}

/** What a source sent. */
interface Received {
  readonly bytes: Uint8Array;
  readonly manifest?: Digest;
}

interface Transfer {
  readonly signal: AbortSignal;
  readonly isForTenant: boolean;
  readonly report: (progress: Progress) => void;
}

/**
 * Fetches modules from their source, verifies their digest and caches them; falls back to the cache when the source fails.
 * Pinned modules may come from other replicas.
 */
export class ModuleStore {
  readonly #cache: ModuleCache;
  readonly #sources: SourcesConfig;
  readonly #maxBytes: number;
  readonly #timeouts: FetchTimeouts;
  readonly #peers: PeerSource | undefined;
  readonly #tenantFolder: string | undefined;
  readonly #verification: Verification | undefined;
  readonly #tasks = new SharedTasks<FetchedModule, Progress>();

  constructor(options: ModuleStoreOptions) {
    const { fetchTimeoutMs } = options;
    this.#maxBytes = options.maxModuleBytes ?? DEFAULT_MAX_MODULE_BYTES;
    this.#cache = new ModuleCache(options.cacheDir, {
      maxModuleBytes: this.#maxBytes,
      ...(options.maxCacheBytes === undefined ? {} : { maxBytes: options.maxCacheBytes }),
    });
    this.#sources = options.sources ?? DEFAULT_SOURCES;
    this.#peers = options.peers;
    this.#tenantFolder = options.tenantFolder;
    this.#verification = options.verification;
    this.#timeouts = { ...options.timeouts, ...(fetchTimeoutMs === undefined ? {} : { totalMs: fetchTimeoutMs }) };
  }

  /**
   * The module of a reference. A pinned module comes from the cache or from a peer if one of them has it. Otherwise it comes
   * from the source; when that fails, the result is the last module that it served, with `sourceError` set. Concurrent calls
   * for the same module share one download.
   * @throws ModuleError any code but `metadata-…`, `protocol-…`, `version-…`, `execution-…`; the signal's reason
   */
  async fetch(reference: string | ModuleReference, options: FetchOptions = {}): Promise<FetchedModule> {
    const { signal, offline = false, isForTenant = false, baseDir, onProgress } = options;
    const parsed =
      typeof reference === 'string' ? parseReference(reference, baseDir === undefined ? {} : { baseDir }) : reference;
    if (this.#verification !== undefined) {
      throw new ModuleError(
        'signature-invalid',
        `${parsed.shown} cannot be verified: this version does not do that yet`,
      );
    }
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

  async #fromCache(reference: ModuleReference): Promise<FetchedModule> {
    const known = await this.#lastKnown(reference);
    if (known === undefined) {
      throw new ModuleError(
        'not-cached',
        `${reference.shown} is not in the cache, and fetching is off: fetch it once while the source is reachable`,
      );
    }
    return known;
  }

  async #resolve(reference: ModuleReference, transfer: Transfer): Promise<FetchedModule> {
    const pinned = isPinned(reference) ? await this.#lastKnown(reference).catch(() => undefined) : undefined;
    if (pinned !== undefined) {
      return pinned;
    }
    const fromPeers = await this.#fromPeers(reference, transfer.signal);
    if (fromPeers.bytes !== undefined) {
      return await this.#verified(reference, { bytes: fromPeers.bytes }, 'peer');
    }
    let received: Received;
    try {
      received = await this.#fromSource(reference, transfer);
    } catch (failure) {
      if (!(failure instanceof ModuleError)) {
        throw failure;
      }
      const error = withDetail(failure, fromPeers.detail);
      if (error.code === 'source-forbidden') {
        // Another policy may have fetched this module.
        throw error;
      }
      // An error of the cache must not hide that of the source.
      const known = await this.#lastKnown(reference).catch(() => undefined);
      if (known === undefined) {
        throw withDetail(error, await this.#corruption(reference));
      }
      return { ...known, sourceError: error };
    }
    return await this.#verified(reference, received, 'source');
  }

  async #fromPeers(reference: ModuleReference, signal: AbortSignal): Promise<PeerOutcome> {
    if (this.#peers === undefined || reference.digest === undefined) {
      return { bytes: undefined, detail: undefined };
    }
    const outcome = await fetchFromPeers(this.#peers, reference.digest, this.#maxBytes, signal);
    signal.throwIfAborted();
    return outcome;
  }

  /** Verifies and caches the bytes. */
  async #verified(reference: ModuleReference, received: Received, origin: 'source' | 'peer'): Promise<FetchedModule> {
    const { bytes } = received;
    const manifest = received.manifest ?? manifestOf(reference);
    const module = {
      url: reference.shown,
      digest: verifiedDigest(reference, bytes),
      bytes,
      origin,
      ...(manifest === undefined ? {} : { manifest }),
    };
    const cacheError = await this.#cacheModule(reference, module);
    return cacheError === undefined ? module : { ...module, cacheError };
  }

  async #fromSource(reference: ModuleReference, { signal, isForTenant, report }: Transfer): Promise<Received> {
    if (reference.kind === 'file') {
      if (isForTenant) {
        assertTenantFile(reference, this.#tenantFolder);
      }
      return { bytes: await readModuleFile(reference, this.#maxBytes) };
    }
    const options = {
      sources: this.#sources,
      maxBytes: this.#maxBytes,
      timeouts: this.#timeouts,
      signal,
      isForTenant,
      onProgress: (received: number, total?: number) => report({ received, total }),
    };
    return reference.kind === 'registry'
      ? await pullModule(reference, { ...options, cached: (digest) => this.#cache.read(digest).catch(() => undefined) })
      : { bytes: await downloadModule(reference, options) };
  }

  /** The pinned module, or the one that the location served last, from the cache. */
  async #lastKnown(reference: ModuleReference): Promise<FetchedModule | undefined> {
    const located = reference.digest === undefined ? await this.#cache.locate(reference) : undefined;
    const digest = reference.digest ?? located?.digest;
    const manifest = manifestOf(reference) ?? located?.manifest;
    const bytes = digest === undefined ? undefined : await this.#cache.read(digest);
    return digest === undefined || bytes === undefined
      ? undefined
      : { url: reference.shown, digest, bytes, origin: 'cache', ...(manifest === undefined ? {} : { manifest }) };
  }

  /** The detail that the cache had the module until its bytes changed on disk. */
  async #corruption(reference: ModuleReference): Promise<string | undefined> {
    const digest = reference.digest ?? (await this.#cache.locate(reference).catch(() => undefined))?.digest;
    return digest !== undefined && (await this.#cache.wasCorrupt(digest))
      ? 'the copy in the cache was corrupt and is set aside'
      : undefined;
  }

  async #cacheModule(
    reference: ModuleReference,
    { digest, bytes, manifest }: FetchedModule,
  ): Promise<ModuleError | undefined> {
    try {
      await this.#cache.write(digest, bytes);
      await this.#cache.remember(reference, digest, manifest);
      if (reference.kind === 'registry' && manifest !== undefined && reference.manifest === undefined) {
        await this.#cache.remember(withManifest(reference, manifest), digest, manifest);
      }
      return undefined;
    } catch (error) {
      if (error instanceof ModuleError) {
        return error;
      }
      throw error;
    }
  }
}

/** Whether a reference names the content of a module, so that no source can change it. */
function isPinned(reference: ModuleReference): boolean {
  return reference.digest !== undefined || manifestOf(reference) !== undefined;
}

function manifestOf(reference: ModuleReference): Digest | undefined {
  return reference.kind === 'registry' ? reference.manifest : undefined;
}

/** The error with a detail in its message, such as the outcome of the peers. */
function withDetail(error: ModuleError, detail: string | undefined): ModuleError {
  if (detail === undefined) {
    return error;
  }
  const { code, message, tenantMessage } = error;
  return new ModuleError(code, `${message} (${detail})`, {
    cause: error,
    tenantMessage: `${tenantMessage} (${detail})`,
  });
}

function verifiedDigest(reference: ModuleReference, bytes: Uint8Array): Digest {
  const digest = digestOf(bytes);
  if (reference.digest !== undefined && reference.digest !== digest) {
    throw new ModuleError(
      'digest-mismatch',
      `${reference.shown} is not the pinned module: expected ${reference.digest}, got ${digest}. ` +
        'If you trust the new one, change the digest in the reference',
      {
        tenantMessage: `${reference.shown} is not the pinned module: expected ${reference.digest}, got another one. If you trust that, change the digest in the reference`,
      },
    );
  }
  return digest;
}
