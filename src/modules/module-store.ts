import { stat } from 'node:fs/promises';

import { ModuleError, type ModuleErrorCode } from './reference/errors.ts';
import { readModuleFile } from './sources/file-source.ts';
import { downloadModule } from './http/http-source.ts';
import type { ReserveMemory } from './http/http-transfer.ts';
import type { FetchTimeouts } from './http/time-limits.ts';
import { type Digest, digestOf } from './reference/digest.ts';
import { DownloadBudget } from './download-budget.ts';
import { ModuleCache } from './cache/module-cache.ts';
import { type ArtifactContent, WASM_MODULE } from './oci/artifact-content.ts';
import { readBundle } from './oci/bundle.ts';
import { type ArtifactDigests, type PulledModule, pullModule, type PullOptions } from './oci/registry-source.ts';
import type { Verification } from './sources/verification.ts';
import { parseReference, withManifest } from './reference/module-reference.ts';
import type { ModuleReference, RegistryReference } from './reference/module-reference.ts';
import { assertTenantModule } from './sources/tenant-modules.ts';
import { assertTenantFile } from './sources/tenant-sources.ts';
import { fetchFromPeers } from './peer-source.ts';
import type { PeerOutcome, PeerSource } from './peer-source.ts';
import { SharedTasks } from './shared-task.ts';
import { DEFAULT_MAX_MODULE_BYTES } from './sources/module-sizes.ts';
import { DEFAULT_SOURCES } from './sources/sources.ts';
import type { SourcesConfig } from './sources/sources.ts';

interface ModuleStoreOptions {
  /** The folder of the cache; several processes may share it. */
  readonly cacheDir: string;
  /** Certificate authorities and proxies. Default: `DEFAULT_SOURCES`. */
  readonly sources?: SourcesConfig;
  /** What artifacts of registries contain. Default: modules. */
  readonly content?: ArtifactContent;
  /** For policies of the cluster; those of tenants have at most the default. Default: `DEFAULT_MAX_MODULE_BYTES`. */
  readonly maxModuleBytes?: number;
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
   * public, are refused, but for `tenantHosts` of the sources; so are modules that are not in their `tenantModules`.
   * Default: false.
   */
  readonly isForTenant?: boolean;
  /** Absolute folder for relative `file://` references. */
  readonly baseDir?: string;
  /**
   * The id of the verification that held for this module, as another replica recorded it. Believed for references with the
   * digests of the manifest and of the module.
   */
  readonly verifiedBy?: string;
  /**
   * Whether the digest is of a revision, which was validated for this policy: then its module may come from the copies of
   * controllers, and a tenant's from wherever it is. Not for a digest that a user names. Default: false.
   */
  readonly isValidated?: boolean;
  /** Called as bytes arrive; never for a module from the cache. */
  readonly onProgress?: (received: number, total?: number) => void;
}

/** Codes of errors after which the cache does not stand in for the source. */
const REFUSALS: ReadonlySet<ModuleErrorCode> = new Set<ModuleErrorCode>([
  'source-forbidden',
  'signature-missing',
  'signature-invalid',
  'trust-root-unavailable',
  'trust-root-invalid',
]);

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
  /** The artifact whose signatures were verified. */
  readonly verified?: ArtifactDigests;
}

/** For whom a module is fetched, and what is known about it. */
interface Access {
  readonly isForTenant: boolean;
  /** Whether another replica verified the module that the reference names. */
  readonly isVouchedFor: boolean;
  /** See FetchOptions. */
  readonly isValidated: boolean;
}

interface Transfer extends Access {
  readonly signal: AbortSignal;
  readonly report: (progress: Progress) => void;
}

/** A transfer that may use memory. */
interface Downloading extends Transfer {
  readonly reserve: ReserveMemory;
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
  readonly #content: ArtifactContent;
  readonly #budget = new DownloadBudget();
  readonly #tasks = new SharedTasks<FetchedModule, Progress>();

  constructor(options: ModuleStoreOptions) {
    const { fetchTimeoutMs } = options;
    this.#maxBytes = options.maxModuleBytes ?? DEFAULT_MAX_MODULE_BYTES;
    this.#cache = new ModuleCache(options.cacheDir, {
      maxModuleBytes: this.#maxBytes,
    });
    this.#sources = options.sources ?? DEFAULT_SOURCES;
    this.#peers = options.peers;
    this.#tenantFolder = options.tenantFolder;
    this.#verification = options.verification;
    this.#content = options.content ?? WASM_MODULE;
    this.#timeouts = { ...options.timeouts, ...(fetchTimeoutMs === undefined ? {} : { totalMs: fetchTimeoutMs }) };
  }

  /**
   * The module of a reference. A pinned module comes from the cache or from a peer if one of them has it. Otherwise it comes
   * from the source; when that fails, the result is the last module that it served, with `sourceError` set. Concurrent calls
   * for the same module share one download.
   * @throws ModuleError any code but `metadata-…`, `protocol-…`, `version-…`, `execution-…`; the signal's reason
   */
  async fetch(reference: string | ModuleReference, options: FetchOptions = {}): Promise<FetchedModule> {
    const {
      signal,
      offline = false,
      isForTenant = false,
      isValidated = false,
      baseDir,
      verifiedBy,
      onProgress,
    } = options;
    const parsed =
      typeof reference === 'string' ? parseReference(reference, baseDir === undefined ? {} : { baseDir }) : reference;
    if (this.#verification !== undefined && parsed.kind !== 'registry') {
      throw new ModuleError(
        'not-verifiable',
        `${parsed.shown} cannot be verified: only modules of registries have signatures. Push it to a registry, and sign it there`,
      );
    }
    if (isForTenant) {
      assertTenantModule(parsed, this.#sources.tenantModules ?? []);
    }
    const isVouchedFor =
      verifiedBy !== undefined &&
      verifiedBy === this.#verification?.id &&
      parsed.digest !== undefined &&
      manifestOf(parsed) !== undefined;
    const access: Access = { isForTenant, isVouchedFor, isValidated };
    const key = JSON.stringify([parsed.key, credentialsOf(parsed), parsed.digest, offline, access]);
    return await this.#tasks.run(
      key,
      async (shared, report) =>
        offline
          ? await this.#fromCache(parsed, access)
          : await this.#resolve(parsed, { ...access, signal: shared, report }),
      {
        ...(signal === undefined ? {} : { signal }),
        ...(onProgress === undefined ? {} : { onProgress: ({ received, total }) => onProgress(received, total) }),
      },
    );
  }

  /**
   * Caches the modules of a bundle, as if they had been fetched. If modules are verified, the bundle has their signatures.
   * @param path of a tarball or folder with an OCI layout
   * @throws ModuleError as {@link readBundle}, `signature-…`, `trust-root-unavailable`, `cache-failed`
   */
  async *load(path: string): AsyncGenerator<FetchedModule> {
    for await (const { reference, read } of readBundle(path)) {
      const maxBytes = this.#maxBytes;
      const received =
        this.#verification === undefined
          ? await read({ maxBytes })
          : await this.#pullVerified(reference, this.#verification, (verify) => read({ maxBytes, verify }));
      const module = await this.#checked(reference, received, 'source', false);
      if (module.cacheError !== undefined) {
        throw module.cacheError;
      }
      // Who fills the cache decides for tenants, too.
      await this.#remember(reference, module, true);
      yield module;
    }
  }

  async #fromCache(reference: ModuleReference, access: Access): Promise<FetchedModule> {
    const known = await this.#lastKnown(reference, access);
    if (known === undefined) {
      const what = this.#verification === undefined ? 'in the cache' : 'in the cache as a verified module';
      throw new ModuleError(
        'not-cached',
        `${reference.shown} is not ${what}, and fetching is off: fetch it once while the source is reachable`,
      );
    }
    return known;
  }

  async #resolve(reference: ModuleReference, transfer: Transfer): Promise<FetchedModule> {
    const pinned = isPinned(reference) ? await this.#lastKnown(reference, transfer).catch(() => undefined) : undefined;
    if (pinned !== undefined) {
      return pinned;
    }
    // Until the module is in the cache, and its bytes are with the caller.
    using download = await this.#budget.begin(hostOf(reference), transfer.isForTenant, transfer.signal);
    return await this.#download(reference, { ...transfer, reserve: download.reserve });
  }

  async #download(reference: ModuleReference, transfer: Downloading): Promise<FetchedModule> {
    const fromPeers = await this.#fromPeers(reference, transfer);
    if (fromPeers.bytes !== undefined) {
      return await this.#checked(reference, { bytes: fromPeers.bytes }, 'peer', transfer.isForTenant);
    }
    let received: Received;
    try {
      received = await this.#fromSource(reference, transfer);
    } catch (failure) {
      if (!(failure instanceof ModuleError)) {
        throw failure;
      }
      const error = withDetail(failure, fromPeers.detail);
      if (REFUSALS.has(error.code)) {
        // Another policy may have fetched this module, or the artifact may have been another one.
        throw error;
      }
      // An error of the cache must not hide that of the source.
      const known = await this.#lastKnown(reference, transfer).catch(() => undefined);
      if (known === undefined) {
        throw withDetail(error, await this.#corruption(reference));
      }
      return { ...known, sourceError: error };
    }
    return await this.#checked(reference, received, 'source', transfer.isForTenant);
  }

  async #fromPeers(reference: ModuleReference, transfer: Downloading): Promise<PeerOutcome> {
    const { signal, isVouchedFor, isValidated, reserve } = transfer;
    const manifest = manifestOf(reference);
    const mayUse =
      reference.digest !== undefined &&
      (await this.#mayHave(reference, reference.digest, transfer)) &&
      (isVouchedFor || (await this.#holds(manifest, reference.digest).catch(() => false)));
    if (this.#peers === undefined || reference.digest === undefined || !mayUse) {
      return { bytes: undefined, detail: undefined };
    }
    const outcome = await fetchFromPeers(this.#peers, reference.digest, {
      maxBytes: this.#maxBytesFor(transfer),
      mayUseCopies: isValidated,
      reserve,
      signal,
    });
    signal.throwIfAborted();
    return outcome;
  }

  /** Compares the bytes with the digest of the reference, and caches them. */
  async #checked(
    reference: ModuleReference,
    received: Received,
    origin: 'source' | 'peer',
    isForTenant: boolean,
  ): Promise<FetchedModule> {
    const { bytes } = received;
    const manifest = received.manifest ?? manifestOf(reference);
    const module = {
      url: reference.shown,
      digest: verifiedDigest(reference, bytes),
      bytes,
      origin,
      ...(manifest === undefined ? {} : { manifest }),
      ...this.#verifiedBy(),
    };
    const cacheError = await this.#cacheModule(reference, module, received.verified, isForTenant);
    return cacheError === undefined ? module : { ...module, cacheError };
  }

  async #fromSource(reference: ModuleReference, transfer: Downloading): Promise<Received> {
    const { signal, isForTenant, isVouchedFor, report, reserve } = transfer;
    if (reference.kind === 'file') {
      if (isForTenant) {
        assertTenantFile(reference, this.#tenantFolder);
      }
      const size = await stat(reference.path).then(
        (file) => file.size,
        () => 0,
      );
      const maxBytes = this.#maxBytesFor(transfer);
      await reserve(Math.min(size, maxBytes), signal);
      return { bytes: await readModuleFile(reference, maxBytes) };
    }
    const options = {
      sources: this.#sources,
      content: this.#content,
      maxBytes: this.#maxBytesFor(transfer),
      timeouts: this.#timeouts,
      signal,
      isForTenant,
      reserve,
      onProgress: (received: number, total?: number) => report({ received, total }),
    };
    if (reference.kind === 'http') {
      return { bytes: await downloadModule(reference, options) };
    }
    // A manifest can name a module that its repository does not have.
    const cached = async ({ manifest, module }: ArtifactDigests): Promise<Uint8Array | undefined> =>
      (await this.#mayHave(withManifest(reference, manifest), module, transfer))
        ? await this.#cache.read(module).catch(() => undefined)
        : undefined;
    const verification = isVouchedFor ? undefined : this.#verification;
    return verification === undefined
      ? await pullModule(reference, { ...options, cached })
      : await this.#pullVerified(reference, verification, (verify) =>
          pullModule(reference, { ...options, cached, verify }),
        );
  }

  /** Pulls a module after the signatures of its artifact were verified in the same place. */
  async #pullVerified(
    reference: RegistryReference,
    verification: Verification,
    pull: (verify: NonNullable<PullOptions['verify']>) => Promise<PulledModule>,
  ): Promise<Received> {
    let verified: ArtifactDigests | undefined;
    const { bytes, manifest } = await pull(async (source, artifact, shown) => {
      verified = undefined;
      if (!(await this.#holds(artifact.manifest, artifact.module).catch(() => false))) {
        // Loaded here, because few policy servers need the libraries for signatures.
        const { verifyArtifact } = await import('./verify/index.ts');
        await verifyArtifact(source, artifact.manifest, shown, verification);
      }
      verified = artifact;
    });
    if (verified === undefined || verified.manifest !== manifest || verified.module !== digestOf(bytes)) {
      throw new ModuleError('signature-invalid', `${reference.shown} is not the artifact that was verified`);
    }
    return { bytes, manifest, verified };
  }

  #maxBytesFor({ isForTenant }: Access): number {
    return isForTenant ? Math.min(this.#maxBytes, DEFAULT_MAX_MODULE_BYTES) : this.#maxBytes;
  }

  /**
   * Whether a module may be used that another policy brought. A tenant's digest alone is no right: its module must have been
   * validated for the policy, or the same reference, with the same credentials, must have brought it to a tenant before.
   */
  async #mayHave(reference: ModuleReference, digest: Digest, { isForTenant, isValidated }: Access): Promise<boolean> {
    if (!isForTenant || isValidated) {
      return true;
    }
    const located = await this.#cache.locate(locationOf(reference, isForTenant)).catch(() => undefined);
    return located?.digest === digest;
  }

  /** The pinned module, or the one that the location served last, from the cache; if modules are verified, a verified one. */
  async #lastKnown(reference: ModuleReference, access: Access): Promise<FetchedModule | undefined> {
    const isComplete = reference.digest !== undefined && manifestOf(reference) !== undefined;
    const located = isComplete ? undefined : await this.#cache.locate(locationOf(reference, access.isForTenant));
    const digest = reference.digest ?? located?.digest;
    const manifest = manifestOf(reference) ?? (located?.digest === digest ? located?.manifest : undefined);
    if (
      digest === undefined ||
      !(await this.#mayHave(reference, digest, access)) ||
      !(access.isVouchedFor || (await this.#holds(manifest, digest)))
    ) {
      return undefined;
    }
    const bytes = await this.#cache.read(digest);
    return bytes === undefined || bytes.length > this.#maxBytesFor(access)
      ? undefined
      : {
          url: reference.shown,
          digest,
          bytes,
          origin: 'cache',
          ...(manifest === undefined ? {} : { manifest }),
          ...this.#verifiedBy(),
        };
  }

  /** Whether the verification is recorded to hold for an artifact; always if modules are not verified. */
  async #holds(manifest: Digest | undefined, module: Digest): Promise<boolean> {
    const { id } = this.#verification ?? {};
    return id === undefined || (manifest !== undefined && (await this.#cache.isVerified({ id, manifest, module })));
  }

  #verifiedBy(): { readonly verifiedBy?: Digest } {
    return this.#verification === undefined ? {} : { verifiedBy: this.#verification.id };
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
    module: FetchedModule,
    verified: ArtifactDigests | undefined,
    isForTenant: boolean,
  ): Promise<ModuleError | undefined> {
    return await cacheErrorOf(async () => {
      await this.#cache.write(module.digest, module.bytes);
      if (verified !== undefined && this.#verification !== undefined) {
        await this.#cache.recordVerified({ id: this.#verification.id, ...verified });
      }
      await this.#remember(reference, module, isForTenant);
    });
  }

  /** Records what a reference brought. @throws ModuleError `cache-failed` */
  async #remember(
    reference: ModuleReference,
    { digest, manifest }: FetchedModule,
    isForTenant: boolean,
  ): Promise<void> {
    await this.#cache.remember(locationOf(reference, isForTenant), digest, manifest);
    if (reference.kind === 'registry' && manifest !== undefined && reference.manifest === undefined) {
      await this.#cache.remember(locationOf(withManifest(reference, manifest), isForTenant), digest, manifest);
    }
  }
}

/** The error of the cache, if it failed. */
async function cacheErrorOf(write: () => Promise<void>): Promise<ModuleError | undefined> {
  try {
    await write();
    return undefined;
  } catch (error) {
    if (error instanceof ModuleError) {
      return error;
    }
    throw error;
  }
}

/**
 * The reference by which the cache knows what a location served. What it served to tenants is known apart, and by the credentials
 * too: a policy of the cluster reaches more places, and a tenant has what others may read with its own credentials only.
 */
function locationOf(reference: ModuleReference, isForTenant: boolean): ModuleReference {
  return isForTenant
    ? { ...reference, key: JSON.stringify(['tenant', reference.key, credentialsOf(reference)]) }
    : reference;
}

/** What a URL has before its host; registries have credentials of the policy server. */
function credentialsOf(reference: ModuleReference): string {
  return reference.kind === 'http' ? `${reference.url.username}:${reference.url.password}` : '';
}

/** Whether a reference names the content of a module, so that no source can change it. */
function isPinned(reference: ModuleReference): boolean {
  return reference.digest !== undefined || manifestOf(reference) !== undefined;
}

/** The host whose downloads are counted together; files have none. */
function hostOf(reference: ModuleReference): string {
  return reference.kind === 'file' ? '' : reference.kind === 'http' ? reference.url.host : reference.host;
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
