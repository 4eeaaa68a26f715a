import { type Digest, digestOf } from '../reference/digest.ts';
import { ModuleError, type ModuleErrorCode } from '../reference/errors.ts';
import { HttpTransfer, type ProgressListener, type TransferOptions } from '../http/http-transfer.ts';
import type { RegistryReference } from '../reference/module-reference.ts';
import { type ArtifactContent, WASM_MODULE } from './artifact-content.ts';
import { OCI_MANIFEST } from './manifest.ts';
import type { RegistryClient } from './registry-client.ts';
import { openRegistry, originsOf, type RegistryOrigin } from './registry-source.ts';
import { uploadBlob, uploadManifest } from './registry-upload.ts';

/** The config of Kubewarden's artifacts, and of those without one. */
const CONFIG = Buffer.from('{}');
const SOURCE_ANNOTATION = 'org.opencontainers.image.source';
const POLICY_SOURCE_ANNOTATION = 'io.kubewarden.policy.source';

export interface PushOptions extends TransferOptions {
  /** Of the policy's metadata. */
  readonly annotations: Readonly<Record<string, string>>;
  /** What is pushed. Default: a module. */
  readonly content?: ArtifactContent;
  readonly onSent?: ProgressListener;
}

/** An artifact that a registry stored. */
export interface PushedModule {
  /** The digest of the manifest. */
  readonly manifest: Digest;
  /** Whether the registry had the module already. */
  readonly wasThere: boolean;
}

/**
 * Pushes a module as Kubewarden lays artifacts out; the same module gets the same digest each time. Mirrors are not written.
 * @throws ModuleError `source-…`, `credentials-invalid`, `token-invalid`, `module-too-large`, `digest-mismatch`; the signal's reason
 */
export async function pushModule(
  reference: RegistryReference,
  module: Uint8Array,
  options: PushOptions,
): Promise<PushedModule> {
  const manifest = manifestOf(module, options.content ?? WASM_MODULE, options.annotations);
  return await onRegistry(reference, options, async (client) => {
    await uploadBlob(client, CONFIG);
    const isSent = await uploadBlob(client, module, options.onSent);
    await uploadManifest(client, reference.tag ?? digestOf(manifest), manifest, OCI_MANIFEST);
    return { manifest: digestOf(manifest), wasThere: !isSent };
  });
}

/** Runs requests that push to a repository, under the time limits of one transfer. */
export async function onRegistry<T>(
  reference: RegistryReference,
  options: TransferOptions,
  work: (client: RegistryClient) => Promise<T>,
): Promise<T> {
  const { host, repository } = reference;
  const { sources } = options;
  const push = async ({ shown, origin }: RegistryOrigin): Promise<T> =>
    await HttpTransfer.run(shown, options, async (transfer) => {
      const access = { transfer, shown, origin, repository, credentialsHost: host, sources, isPush: true };
      return await work(await openRegistry(access));
    });
  const [secure, plain] = originsOf(reference, sources);
  try {
    return await push(secure);
  } catch (error) {
    if (plain === undefined || !(error instanceof ModuleError) || !IS_WITHOUT_ANSWER.has(error.code)) {
      throw error;
    }
    return await push(plain);
  }
}

/** Codes after which an insecure registry is tried without TLS: it did not answer, so it got no credentials. */
const IS_WITHOUT_ANSWER: ReadonlySet<ModuleErrorCode> = new Set<ModuleErrorCode>([
  'source-unreachable',
  'source-untrusted',
  'source-truncated',
]);

function manifestOf(
  module: Uint8Array,
  { mediaTypes: [mediaType], configMediaType, artifactType, title }: ArtifactContent,
  annotations: Readonly<Record<string, string>>,
): Buffer {
  const published = manifestAnnotations(annotations);
  return Buffer.from(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: OCI_MANIFEST,
      ...(artifactType === undefined ? {} : { artifactType }),
      config: { mediaType: configMediaType, digest: digestOf(CONFIG), size: CONFIG.length },
      layers: [
        {
          mediaType,
          digest: digestOf(module),
          size: module.length,
          annotations: { 'org.opencontainers.image.title': title },
        },
      ],
      ...(Object.keys(published).length === 0 ? {} : { annotations: published }),
    }),
  );
}

/** Annotations of the metadata, sorted, without those of several lines, which registries do not expect. */
function manifestAnnotations(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const source = annotations[POLICY_SOURCE_ANNOTATION];
  const all = source === undefined ? annotations : { [SOURCE_ANNOTATION]: source, ...annotations };
  return Object.fromEntries(
    Object.entries(all)
      .filter(([, value]) => !/[\r\n]/.test(value.trimEnd()))
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}
