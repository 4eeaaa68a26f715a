import type { Digest } from '../reference/digest.ts';
import { ModuleError, type ModuleErrorCode } from '../reference/errors.ts';
import { HttpTransfer, type ProgressListener, type TransferOptions } from '../http/http-transfer.ts';
import type { RegistryReference } from '../reference/module-reference.ts';
import type { SourcesConfig } from '../sources/sources.ts';
import { type ArtifactContent, WASM_MODULE } from './artifact-content.ts';
import { type Artifact, type ArtifactSource, resolveArtifact } from './artifact-source.ts';
import { credentialsFor } from './docker-config.ts';
import { LayoutFiles } from './layout-files.ts';
import { LayoutRepository } from './layout.ts';
import { contentLayer } from './manifest.ts';
import { RegistryClient, type RegistryClientOptions } from './registry-client.ts';

/** The registry API of Docker Hub has another host than its references. */
const API_HOSTS: ReadonlyMap<string, string> = new Map([['docker.io', 'registry-1.docker.io']]);

export interface PullOptions extends TransferOptions {
  readonly maxBytes: number;
  /** What is pulled. Default: a module. */
  readonly content?: ArtifactContent;
  /** Finds a module that need not be downloaded again. Default: none. */
  readonly cached?: (artifact: ArtifactDigests) => Promise<Uint8Array | undefined>;
  /** Called before the module is downloaded; throws if the artifact must not be used. Default: every artifact may be used. */
  readonly verify?: (source: ArtifactSource, artifact: ArtifactDigests, shown: string) => Promise<void>;
  readonly onProgress?: ProgressListener;
}

/** What an artifact is verified as: its manifest names the module. */
export interface ArtifactDigests {
  /** The digest that the reference resolved to. */
  readonly manifest: Digest;
  readonly module: Digest;
}

/** A module from a registry. */
export interface PulledModule {
  readonly bytes: Uint8Array;
  /** The digest that the reference resolved to. */
  readonly manifest: Digest;
}

/** A registry, or a mirror of it. */
interface Endpoint {
  readonly shown: string;
  /** Of a mirror: the administrator trusts it, so tenants may have modules from it whatever its address. */
  readonly trustedHost?: string;
  readonly open: (transfer: HttpTransfer) => Promise<ArtifactSource>;
}

/**
 * Pulls a module, from the first of the registry's mirrors that has it, or else from the registry itself.
 * @throws ModuleError `source-…`, `credentials-invalid`, `token-invalid`, `manifest-invalid`, `media-type-unsupported`, `size-
 * mismatch`, `digest-mismatch`, `module-too-large`, `not-wasm`; the signal's reason
 */
export async function pullModule(reference: RegistryReference, options: PullOptions): Promise<PulledModule> {
  return await withRepository(reference, options, async (source, { shown }) =>
    readModuleOf(source, reference, { ...options, shown }),
  );
}

export interface ReadOptions extends Pick<PullOptions, 'maxBytes' | 'content' | 'cached' | 'verify' | 'onProgress'> {
  /** The artifact, for messages. */
  readonly shown: string;
}

/**
 * Reads the module of an artifact, once `verify` has accepted it.
 * @throws ModuleError as of {@link ArtifactSource}, `media-type-unsupported`, `module-too-large`, `not-wasm`
 */
export async function readModuleOf(
  source: ArtifactSource,
  reference: RegistryReference,
  options: ReadOptions,
): Promise<PulledModule> {
  const { shown, content = WASM_MODULE } = options;
  const { digest, manifest }: Artifact = await resolveArtifact(source, versionOf(reference), shown);
  const layer = contentLayer(manifest.layers, content, shown);
  if (layer.size > options.maxBytes) {
    throw new ModuleError(
      'module-too-large',
      `${shown} is too large: expected at most ${options.maxBytes} bytes, got ${layer.size}`,
    );
  }
  if (reference.digest !== undefined && layer.digest !== reference.digest) {
    throw new ModuleError(
      'digest-mismatch',
      `${shown} is not the pinned module: expected ${reference.digest}, got ${layer.digest}`,
    );
  }
  const artifact = { manifest: digest, module: layer.digest };
  await options.verify?.(source, artifact, shown);
  const known = await options.cached?.(artifact);
  const bytes = known?.length === layer.size ? known : await source.blob(layer, options.onProgress);
  content.check(bytes, shown, layer.mediaType);
  return { bytes, manifest: digest };
}

/** The digest that a reference has now. @throws ModuleError as {@link pullModule} */
export async function resolveDigest(reference: RegistryReference, options: TransferOptions): Promise<Digest> {
  return await withRepository(
    reference,
    options,
    async (source) => (await source.manifest(versionOf(reference))).digest,
  );
}

/** The tag or digest to request. */
export function versionOf({ manifest, tag }: RegistryReference): string {
  return manifest ?? tag ?? '';
}

/**
 * Runs work on the repository of each mirror until it succeeds, then on that of the registry. The error is that of the
 * registry, or of the only mirror that has the artifact, and contains the messages of the others.
 */
export async function withRepository<T>(
  reference: RegistryReference,
  options: TransferOptions,
  work: (source: ArtifactSource, endpoint: { readonly shown: string }) => Promise<T>,
): Promise<T> {
  const endpoints = endpointsOf(reference, options);
  const failures: ModuleError[] = [];
  for (const endpoint of endpoints) {
    try {
      return await HttpTransfer.run(endpoint.shown, transferOptions(endpoint, options), async (transfer) =>
        work(await endpoint.open(transfer), endpoint),
      );
    } catch (error) {
      if (!(error instanceof ModuleError) || options.signal?.aborted === true) {
        throw error;
      }
      failures.push(error);
    }
  }
  throw combined(failures);
}

function endpointsOf(reference: RegistryReference, options: TransferOptions): readonly Endpoint[] {
  const { host, repository, shown } = reference;
  const { sources } = options;
  const mirrors = (sources.mirrors.get(host) ?? []).map((mirror): Endpoint => {
    const place = `${shown} (mirror ${mirror.shown})`;
    return mirror.kind === 'layout'
      ? {
          shown: place,
          open: async () => new LayoutRepository(new LayoutFiles(mirror.path), `${host}/${repository}`, place),
        }
      : {
          ...registryEndpoint(mirror.origin, `${mirror.prefix}${repository}`, place, options),
          trustedHost: new URL(mirror.origin).host,
        };
  });
  const registries = originsOf(reference, sources)
    .filter((place) => place !== undefined)
    .map(({ origin, shown: place }) => registryEndpoint(origin, repository, place, options, host));
  return [...mirrors, ...registries];
}

/** An address of a registry. */
export interface RegistryOrigin {
  readonly origin: string;
  readonly shown: string;
}

/** The addresses of a registry: as in Kubewarden, an insecure one is reached without checking its certificate, or else without TLS. */
export function originsOf(
  { host, shown }: RegistryReference,
  { insecureSources }: SourcesConfig,
): readonly [RegistryOrigin, RegistryOrigin?] {
  const apiHost = API_HOSTS.get(host) ?? host;
  const secure = { origin: `https://${apiHost}`, shown };
  return insecureSources.includes(host)
    ? [secure, { origin: `http://${apiHost}`, shown: `${shown} (without TLS)` }]
    : [secure];
}

/** @param credentialsHost the host in the Docker config file. Default: that of the origin */
function registryEndpoint(
  origin: string,
  repository: string,
  shown: string,
  { sources }: TransferOptions,
  credentialsHost = new URL(origin).host,
): Endpoint {
  return { shown, open: (transfer) => openRegistry({ transfer, shown, origin, repository, credentialsHost, sources }) };
}

interface RegistryAccess extends Omit<RegistryClientOptions, 'credentials'> {
  /** The host in the Docker config file. */
  readonly credentialsHost: string;
  readonly sources: SourcesConfig;
}

/** A client with the credentials of the Docker config file. @throws ModuleError `credentials-invalid` */
export async function openRegistry({ credentialsHost, sources, ...options }: RegistryAccess): Promise<RegistryClient> {
  const { dockerConfig } = sources;
  const { signal } = options.transfer.limits;
  const credentials =
    dockerConfig === undefined
      ? undefined
      : await credentialsFor(dockerConfig, credentialsHost, options.repository, signal);
  return new RegistryClient({ ...options, credentials });
}

function transferOptions({ trustedHost }: Endpoint, options: TransferOptions): TransferOptions {
  const { sources } = options;
  return trustedHost === undefined
    ? options
    : { ...options, sources: { ...sources, tenantHosts: [...sources.tenantHosts, trustedHost] } };
}

/** Codes for an endpoint that is down or lacks the artifact. Any other error explains more. */
const IS_ABSENT: ReadonlySet<ModuleErrorCode> = new Set<ModuleErrorCode>([
  'source-unreachable',
  'source-timeout',
  'source-not-found',
]);

/** The last error that is not in {@link IS_ABSENT}, if any, with the messages of all. */
function combined(failures: readonly ModuleError[]): ModuleError {
  const main = failures.findLast(({ code }) => !IS_ABSENT.has(code)) ?? failures.at(-1);
  if (main === undefined || failures.length === 1) {
    return main ?? new ModuleError('source-unreachable', 'no registry to pull from');
  }
  const others = failures.filter((failure) => failure !== main).map(({ message }) => message);
  const { code, message, tenantMessage } = main;
  return new ModuleError(code, `${message}. Tried as well: ${others.join('; ')}`, { cause: main, tenantMessage });
}
