// Pushes an artifact of an OCI layout, such as a container image: its index, the images of all platforms, and what refers to them.
import { parseJson, textOf, valueAt } from '../../values/index.ts';
import { type Digest, isDigest } from '../reference/digest.ts';
import { ModuleError } from '../reference/errors.ts';
import type { ProgressListener, TransferOptions } from '../http/http-transfer.ts';
import type { RegistryReference } from '../reference/module-reference.ts';
import { referrersTag } from './artifact-source.ts';
import { LayoutFiles } from './layout-files.ts';
import { LayoutRepository, NAME_ANNOTATION, readLayoutIndex } from './layout.ts';
import { type Descriptor, type Manifest, OCI_INDEX, OCI_MANIFEST, parseManifest } from './manifest.ts';
import { onRegistry } from './push.ts';
import type { RegistryClient } from './registry-client.ts';
import { uploadBlob, uploadManifest } from './registry-upload.ts';

/** Most manifests of one artifact: its indexes, what they list, and what refers to them. */
const MAX_MANIFESTS = 200;
/** Largest blob, which is in memory while it is sent: the largest of our image, Node, has 45 MB. Bytes. */
const MAX_BLOB_BYTES = 256 * 1024 * 1024;
/** Time for one blob: {@link MAX_BLOB_BYTES} at half a megabyte per second. Milliseconds. */
const BLOB_TIMEOUT_MS = 600_000;

/** Called as a blob is sent, with its digest. */
type BlobListener = (digest: Digest, sent: number, total: number) => void;

export interface PushLayoutOptions extends TransferOptions {
  readonly onSent?: BlobListener;
}

/** An artifact that a registry stored. */
export interface PushedLayout {
  /** The digest of the index or manifest. */
  readonly manifest: Digest;
  /** Whether it is a container image, for one platform or for several. */
  readonly isImage: boolean;
  /** Artifacts about it, such as SBOMs and signatures, that were pushed along. */
  readonly referrers: number;
}

/**
 * Pushes the artifact of a layout that has the tag of the reference, or the only one that it has, without changing its digest.
 * @param path of the folder or tarball
 * @throws ModuleError `source-…`, `size-mismatch`, `digest-mismatch`, `manifest-invalid`, `module-too-large`, `file-
 * unreadable`, `credentials-invalid`, `token-invalid`; the signal's reason
 */
export async function pushLayout(
  reference: RegistryReference,
  path: string,
  options: PushLayoutOptions,
): Promise<PushedLayout> {
  const files = new LayoutFiles(path);
  const push = new LayoutPush(files, reference, options);
  const listed = await readLayoutIndex(files, path);
  const named = listed.filter((one) => nameOf(one) !== undefined);
  return await push.push(artifactOf(named.length > 0 ? named : await push.withoutReferrers(listed), reference, path));
}

function nameOf({ annotations }: Descriptor): string | undefined {
  return annotations.get(NAME_ANNOTATION);
}

/** The artifact to push, of those of a layout. @throws ModuleError `source-not-found` */
function artifactOf(
  artifacts: readonly Descriptor[],
  { host, repository, tag = '' }: RegistryReference,
  path: string,
): Descriptor {
  const [only] = artifacts;
  const tagged = artifacts.find((one) => [tag, `${host}/${repository}:${tag}`].includes(nameOf(one) ?? ''));
  const found = tagged ?? (new Set(artifacts.map(({ digest }) => digest)).size === 1 ? only : undefined);
  if (found === undefined) {
    const names = artifacts.map((one) => nameOf(one) ?? one.digest).join(', ');
    throw new ModuleError(
      'source-not-found',
      `${path} has no artifact with the tag ${tag}: expected that one, or a layout with a single artifact; it has ${names || 'none'}`,
    );
  }
  return found;
}

/** One push, with the manifests that were sent. */
class LayoutPush {
  readonly #layout: LayoutRepository;
  readonly #reference: RegistryReference;
  readonly #options: PushLayoutOptions;
  readonly #pushed = new Set<Digest>();
  #referrers = 0;
  #isImage = false;

  constructor(files: LayoutFiles, reference: RegistryReference, options: PushLayoutOptions) {
    this.#layout = new LayoutRepository(files, `${reference.host}/${reference.repository}`, reference.shown);
    this.#reference = reference;
    this.#options = { ...options, timeouts: { totalMs: BLOB_TIMEOUT_MS, ...options.timeouts } };
  }

  async push({ digest }: Descriptor): Promise<PushedLayout> {
    await this.#pushManifest(digest, this.#reference.tag ?? digest);
    return { manifest: digest, isImage: this.#isImage, referrers: this.#referrers };
  }

  /** The entries of an index that are about no other. */
  async withoutReferrers(listed: readonly Descriptor[]): Promise<readonly Descriptor[]> {
    if (listed.length > MAX_MANIFESTS) {
      throw this.#tooMany();
    }
    const found: Descriptor[] = [];
    for (const entry of listed) {
      const manifest = await this.#manifest(entry.digest);
      found.push(...(manifest.kind === 'manifest' && manifest.subject !== undefined ? [] : [entry]));
    }
    return found;
  }

  /** Pushes a manifest after all that it names, as registries require, and then what refers to it. Resolves with whether the registry lists it as a referrer. */
  async #pushManifest(digest: Digest, name: string): Promise<boolean> {
    this.#pushed.add(digest);
    const raw = await this.#layout.manifest(digest);
    const manifest = parseManifest(raw.bytes, this.#shown, undefined);
    const parts = manifest.kind === 'index' ? manifest.manifests : [];
    if (this.#pushed.size + parts.length > MAX_MANIFESTS) {
      throw this.#tooMany();
    }
    for (const { digest: part } of parts) {
      if (!this.#pushed.has(part)) {
        await this.#pushManifest(part, part);
      }
    }
    if (manifest.kind === 'manifest') {
      await this.#pushBlobs(manifest.config === undefined ? manifest.layers : [manifest.config, ...manifest.layers]);
      this.#isImage ||= manifest.config?.mediaType.includes('image.config') === true;
    }
    const mediaType = mediaTypeOf(raw.bytes, manifest.kind);
    const isListed = await this.#request((client) => uploadManifest(client, name, raw.bytes, mediaType));
    await this.#pushReferrers(digest);
    return isListed;
  }

  async #pushBlobs(blobs: readonly Descriptor[]): Promise<void> {
    for (const blob of blobs) {
      if (blob.size > MAX_BLOB_BYTES) {
        throw new ModuleError(
          'module-too-large',
          `${this.#shown} cannot be pushed: expected blobs of at most ${MAX_BLOB_BYTES} bytes, got ${blob.size}`,
        );
      }
      const bytes = await this.#layout.blob(blob);
      const onSent: ProgressListener = (sent) => this.#options.onSent?.(blob.digest, sent, bytes.length);
      await this.#request((client) => uploadBlob(client, bytes, onSent));
    }
  }

  async #pushReferrers(subject: Digest): Promise<void> {
    const unlisted: Descriptor[] = [];
    for (const referrer of await this.#layout.referrers(subject)) {
      if (!this.#pushed.has(referrer.digest)) {
        this.#referrers += 1;
        const isListed = await this.#pushManifest(referrer.digest, referrer.digest);
        unlisted.push(...(isListed ? [] : [referrer]));
      }
    }
    if (unlisted.length > 0) {
      await this.#request((client) => listReferrers(client, subject, unlisted));
    }
  }

  async #manifest(digest: Digest): Promise<Manifest> {
    return parseManifest((await this.#layout.manifest(digest)).bytes, this.#shown, undefined);
  }

  #tooMany(): ModuleError {
    return new ModuleError('manifest-invalid', `${this.#shown} has more than ${MAX_MANIFESTS} manifests`);
  }

  get #shown(): string {
    return this.#reference.shown;
  }

  async #request<T>(work: (client: RegistryClient) => Promise<T>): Promise<T> {
    return await onRegistry(this.#reference, this.#options, work);
  }
}

/** Adds referrers to their list where a registry has no API for them (distribution-spec, "Pushing Manifests with Subject"). */
async function listReferrers(client: RegistryClient, subject: Digest, referrers: readonly Descriptor[]): Promise<void> {
  const tag = referrersTag(subject);
  const added = new Set<unknown>(referrers.map(({ digest }) => digest));
  const others = (await listedUnder(client, tag)).filter((entry) => !added.has(valueAt(entry, 'digest')));
  const entries = referrers.map(({ mediaType, digest, size, artifactType }) => ({
    mediaType,
    digest,
    size,
    ...(artifactType === '' ? {} : { artifactType }),
  }));
  const list = { schemaVersion: 2, mediaType: OCI_INDEX, manifests: [...others, ...entries] };
  await uploadManifest(client, tag, Buffer.from(JSON.stringify(list)), OCI_INDEX);
}

/** The entries of an index as they are; none if there is no such tag. */
async function listedUnder(client: RegistryClient, tag: string): Promise<readonly unknown[]> {
  try {
    const { bytes } = await client.manifest(tag);
    const entries = valueAt(parseJson(Buffer.from(bytes).toString('utf8')), 'manifests');
    return Array.isArray(entries) ? entries.filter((entry) => isDigest(valueAt(entry, 'digest'))) : [];
  } catch (error) {
    if (error instanceof ModuleError && error.code === 'source-not-found') {
      return [];
    }
    throw error;
  }
}

function mediaTypeOf(bytes: Uint8Array, kind: 'manifest' | 'index'): string {
  const named = textOf(valueAt(parseJson(Buffer.from(bytes).toString('utf8')), 'mediaType'));
  return named || (kind === 'index' ? OCI_INDEX : OCI_MANIFEST);
}
