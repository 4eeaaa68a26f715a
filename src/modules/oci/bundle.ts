// Bundles of artifacts for clusters without network: a tarball of an OCI layout, with the signatures of each artifact.
import { randomUUID } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';

import { parseJson, textOf, valueAt } from '../../values/index.ts';
import type { Digest } from '../reference/digest.ts';
import { ModuleError, systemCode } from '../reference/errors.ts';
import type { ProgressListener, TransferOptions } from '../http/http-transfer.ts';
import { parseReference, type RegistryReference } from '../reference/module-reference.ts';
import { type ArtifactSource, type RawManifest, resolveArtifact, signatureTag } from './artifact-source.ts';
import { LayoutFiles } from './layout-files.ts';
import { blobPath, LayoutRepository, NAME_ANNOTATION, readLayoutIndex } from './layout.ts';
import { WASM_MODULE } from './artifact-content.ts';
import { contentLayer, type Descriptor, OCI_INDEX, OCI_MANIFEST, parseManifest } from './manifest.ts';
import { type PulledModule, type ReadOptions, readModuleOf, versionOf, withRepository } from './registry-source.ts';
import { TarballWriter } from './tarball.ts';

/** Most manifests of one artifact: its indexes, what they list, and its signatures. */
const MAX_MANIFESTS = 200;
/** Most bytes of one artifact with its signatures. */
const MAX_ARTIFACT_BYTES = 256 * 1024 * 1024;
/** The tag of cosign's signatures, and that of a list of referrers. */
const SIGNATURE_TAG = /^sha256-[0-9a-f]{64}(?:\.sig)?$/;
/** Types of artifacts that are signatures; some registries omit the type. */
const SIGNATURE_TYPE = /^(?:|application\/vnd\.dev\.(?:sigstore\.bundle|cosign\.artifact\.sig)\..*)$/;
const LAYOUT_FILE = Buffer.from('{"imageLayoutVersion":"1.0.0"}');

/** An artifact that was written to a bundle. */
export interface SavedArtifact {
  readonly shown: string;
  /** Of the manifest or index that the reference resolved to. */
  readonly digest: Digest;
  /** Manifests of signatures that were saved along. */
  readonly signatures: number;
}

export interface SaveOptions extends TransferOptions {
  /** Called after each artifact. */
  readonly onSaved?: (artifact: SavedArtifact) => void;
  /** Called as the bytes of a module or signature arrive. */
  readonly onProgress?: ProgressListener;
}

/** An artifact of a bundle. */
export interface BundledModule {
  readonly reference: RegistryReference;
  /** @throws ModuleError as {@link readModuleOf} */
  readonly read: (options: Omit<ReadOptions, 'shown'>) => Promise<PulledModule>;
}

interface IndexEntry {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly size: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

/**
 * Writes artifacts to a tarball, which replaces the file as a whole. The same artifacts give the same bytes.
 * @throws ModuleError as {@link withRepository}, `media-type-unsupported`, `file-unreadable` (the tarball cannot be written)
 */
export async function saveBundle(
  path: string,
  references: readonly RegistryReference[],
  options: SaveOptions,
): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    {
      await using file = await open(temporary, 'wx');
      const bundle = new BundleWriter(new TarballWriter(file));
      for (const reference of references) {
        const saved = await bundle.add(reference, options);
        options.onSaved?.(saved);
      }
      await bundle.end();
      await file.sync();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    const code = systemCode(error);
    throw error instanceof ModuleError || code === undefined
      ? error
      : new ModuleError('file-unreadable', `${path} cannot be written (${code})`, { cause: error });
  }
}

class BundleWriter {
  readonly #tarball: TarballWriter;
  readonly #index = new Map<string, IndexEntry>();
  readonly #written = new Set<Digest>();

  constructor(tarball: TarballWriter) {
    this.#tarball = tarball;
  }

  async add(reference: RegistryReference, options: SaveOptions): Promise<SavedArtifact> {
    return await withRepository(reference, options, async (source, { shown }) => {
      const { digest, manifest } = await resolveArtifact(source, versionOf(reference), shown);
      // Only policies are saved: other artifacts may have any size.
      contentLayer(manifest.layers, WASM_MODULE, shown);
      const artifact = new ArtifactReader(source, shown, this, options.onProgress);
      const repository = `${reference.host}/${reference.repository}`;
      const name = reference.tag === undefined ? `${repository}@${digest}` : `${repository}:${reference.tag}`;
      this.#list(await artifact.copy(digest), name);
      const signatures = await artifact.copySignatures(digest);
      for (const { entry, tag } of signatures) {
        // The tag alone as well, because oras takes no name with a colon.
        for (const signatureName of tag === undefined ? [undefined] : [`${repository}:${tag}`, tag]) {
          this.#list(entry, signatureName);
        }
      }
      return { shown: reference.shown, digest, signatures: signatures.length };
    });
  }

  async end(): Promise<void> {
    const manifests = [...this.#index.values()];
    const index = { schemaVersion: 2, mediaType: OCI_INDEX, manifests };
    await this.#tarball.add('index.json', Buffer.from(JSON.stringify(index)));
    await this.#tarball.add('oci-layout', LAYOUT_FILE);
    await this.#tarball.end();
  }

  #list(entry: IndexEntry, name: string | undefined): void {
    const annotations = name === undefined ? undefined : { [NAME_ANNOTATION]: name };
    this.#index.set(name ?? entry.digest, { ...entry, ...(annotations === undefined ? {} : { annotations }) });
  }

  has(digest: Digest): boolean {
    return this.#written.has(digest);
  }

  async write(digest: Digest, bytes: Uint8Array): Promise<void> {
    if (!this.#written.has(digest)) {
      this.#written.add(digest);
      await this.#tarball.add(blobPath(digest), bytes);
    }
  }
}

interface SignatureEntry {
  readonly entry: IndexEntry;
  readonly tag?: string;
}

/** Reads an artifact with all that it refers to, within limits. */
class ArtifactReader {
  readonly #source: ArtifactSource;
  readonly #shown: string;
  readonly #bundle: BundleWriter;
  readonly #onProgress: ProgressListener | undefined;
  #manifests = 0;
  #bytes = 0;

  constructor(source: ArtifactSource, shown: string, bundle: BundleWriter, onProgress: ProgressListener | undefined) {
    this.#source = source;
    this.#shown = shown;
    this.#bundle = bundle;
    this.#onProgress = onProgress;
  }

  /** Copies a manifest or index, and all that it refers to. */
  async copy(reference: string): Promise<IndexEntry> {
    return await this.#copy(await this.#source.manifest(reference));
  }

  async #copy(raw: RawManifest): Promise<IndexEntry> {
    const manifest = parseManifest(raw.bytes, this.#shown, raw.contentType);
    if (manifest.kind === 'index') {
      this.#countManifests(manifest.manifests.length);
      for (const { digest } of manifest.manifests) {
        await this.copy(digest);
      }
    } else {
      const { config, layers } = manifest;
      for (const blob of config === undefined ? layers : [config, ...layers]) {
        if (!this.#bundle.has(blob.digest)) {
          this.#count(blob.size);
          await this.#bundle.write(blob.digest, await this.#source.blob(blob, this.#onProgress));
        }
      }
    }
    this.#count(raw.bytes.length);
    await this.#bundle.write(raw.digest, raw.bytes);
    return { mediaType: mediaTypeOf(raw, manifest.kind), digest: raw.digest, size: raw.bytes.length };
  }

  /** Copies the signatures under cosign's tag, and those that name the artifact as their subject. */
  async copySignatures(digest: Digest): Promise<readonly SignatureEntry[]> {
    const tag = signatureTag(digest);
    const tagged = await this.#ifThere(tag);
    const signatures: SignatureEntry[] = tagged === undefined ? [] : [{ entry: tagged, tag }];
    const all = await this.#source.referrers(digest);
    const referrers = all.filter(({ artifactType }) => SIGNATURE_TYPE.test(artifactType));
    this.#countManifests(referrers.length);
    for (const referrer of referrers) {
      signatures.push({ entry: await this.copy(referrer.digest) });
    }
    return signatures;
  }

  async #ifThere(reference: string): Promise<IndexEntry | undefined> {
    let raw: RawManifest;
    try {
      raw = await this.#source.manifest(reference);
    } catch (error) {
      if (error instanceof ModuleError && error.code === 'source-not-found') {
        return undefined;
      }
      throw error;
    }
    return await this.#copy(raw);
  }

  #countManifests(count: number): void {
    this.#manifests += count;
    if (this.#manifests > MAX_MANIFESTS) {
      throw this.#tooLarge(`more than ${MAX_MANIFESTS} manifests`);
    }
  }

  #count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > MAX_ARTIFACT_BYTES) {
      throw this.#tooLarge(`more than ${MAX_ARTIFACT_BYTES} bytes`);
    }
  }

  #tooLarge(got: string): ModuleError {
    return new ModuleError('module-too-large', `${this.#shown} cannot be saved: it has, with its signatures, ${got}`);
  }
}

function mediaTypeOf({ bytes, contentType }: RawManifest, kind: 'manifest' | 'index'): string {
  const manifest = parseJson(Buffer.from(bytes).toString('utf8'));
  const mediaType = textOf(valueAt(manifest, 'mediaType'));
  return mediaType || (contentType?.split(';', 1)[0] ?? '').trim() || (kind === 'index' ? OCI_INDEX : OCI_MANIFEST);
}

/**
 * The artifacts of a layout, by the names in its index, without signatures.
 * @param path of the folder or tarball
 * @throws ModuleError as {@link readLayoutIndex}, `reference-invalid`
 */
export async function* readBundle(path: string): AsyncGenerator<BundledModule> {
  const files = new LayoutFiles(path);
  for (const descriptor of await readLayoutIndex(files, path)) {
    const named = referenceOf(descriptor);
    if (named !== undefined) {
      const { host, repository, shown } = named;
      const source = new LayoutRepository(files, `${host}/${repository}`, shown);
      const pinned = { ...named, manifest: descriptor.digest };
      yield { reference: named, read: async (options) => readModuleOf(source, pinned, { ...options, shown }) };
    }
  }
}

/** Undefined for an entry without a whole name, and for signatures. */
function referenceOf({ annotations }: Descriptor): RegistryReference | undefined {
  const name = annotations.get(NAME_ANNOTATION);
  if (name === undefined || !name.includes('/')) {
    return undefined;
  }
  const reference = parseReference(`registry://${name}`);
  const isSignature = reference.kind !== 'registry' || SIGNATURE_TAG.test(reference.tag ?? '');
  return isSignature ? undefined : reference;
}
