// Artifacts on disk, in an OCI layout (https://github.com/opencontainers/image-spec/blob/main/image-layout.md).
import { type Digest, digestOf, isDigest } from '../reference/digest.ts';
import { ModuleError } from '../reference/errors.ts';
import { type ArtifactSource, type RawManifest, taggedReferrers } from './artifact-source.ts';
import type { LayoutFiles } from './layout-files.ts';
import { type Descriptor, MAX_MANIFEST_BYTES, OCI_INDEX, parseManifest } from './manifest.ts';

/** The annotation of an index that names a manifest. Tools write a tag, or a whole reference. */
export const NAME_ANNOTATION = 'org.opencontainers.image.ref.name';

/** Largest manifest that is searched for its subject: those of signatures have few layers. Bytes. */
const MAX_REFERRER_BYTES = 256 * 1024;

/** One repository of a layout. */
export class LayoutRepository implements ArtifactSource {
  readonly #files: LayoutFiles;
  readonly #name: string;
  readonly #shown: string;
  /** Read once, because finding signatures needs it several times. */
  #index: Promise<readonly Descriptor[]> | undefined;

  /**
   * @param name `host/repository`, as in the names of the index
   * @param shown the artifact, for messages
   */
  constructor(files: LayoutFiles, name: string, shown: string) {
    this.#files = files;
    this.#name = name;
    this.#shown = shown;
  }

  async manifest(reference: string): Promise<RawManifest> {
    const digest = isDigest(reference) ? reference : await this.#digestOfTag(reference);
    const bytes = await this.#read(digest, MAX_MANIFEST_BYTES);
    return { bytes, digest, contentType: undefined };
  }

  async blob({ digest, size }: Descriptor): Promise<Uint8Array> {
    const bytes = await this.#read(digest, size);
    if (bytes.length !== size) {
      throw new ModuleError(
        'size-mismatch',
        `a blob of ${this.#shown} has another size than its manifest says: expected ${size} bytes, got ${bytes.length}`,
      );
    }
    return bytes;
  }

  async referrers(digest: Digest): Promise<readonly Descriptor[]> {
    // Tools write all manifests to the index; a manifest names its subject only in its content.
    const found: Descriptor[] = [];
    for (const entry of await this.#manifests()) {
      if (entry.size <= MAX_REFERRER_BYTES && entry.digest !== digest) {
        const artifactType = await this.#typeOfReferrer(entry, digest);
        if (artifactType !== undefined) {
          found.push({ ...entry, artifactType });
        }
      }
    }
    const tagged = await taggedReferrers(this, digest, this.#shown);
    return [...found, ...tagged.filter((entry) => !found.some((other) => other.digest === entry.digest))];
  }

  /** The type of an artifact; undefined if it is not about the subject. */
  async #typeOfReferrer({ digest }: Descriptor, subject: Digest): Promise<string | undefined> {
    try {
      const manifest = parseManifest(await this.#read(digest, MAX_REFERRER_BYTES), this.#shown, undefined);
      return manifest.kind === 'manifest' && manifest.subject === subject ? manifest.artifactType : undefined;
    } catch (error) {
      // Of other artifacts: they may be incomplete, and of any type.
      if (error instanceof ModuleError) {
        return undefined;
      }
      throw error;
    }
  }

  #manifests(): Promise<readonly Descriptor[]> {
    return (this.#index ??= readLayoutIndex(this.#files, this.#shown));
  }

  async #digestOfTag(tag: string): Promise<Digest> {
    const names = [`${this.#name}:${tag}`, tag];
    const manifests = await this.#manifests();
    const found = names
      .map((name) => manifests.find(({ annotations }) => annotations.get(NAME_ANNOTATION) === name))
      .find((manifest) => manifest !== undefined);
    if (found === undefined) {
      throw new ModuleError(
        'source-not-found',
        `${this.#shown} is not in the OCI layout ${this.#files.path}: expected ${NAME_ANNOTATION} ${names[0]} in its index.json`,
      );
    }
    return found.digest;
  }

  async #read(digest: Digest, maxBytes: number): Promise<Buffer> {
    const bytes = await this.#files.read(blobPath(digest), maxBytes, this.#shown);
    const got = digestOf(bytes);
    if (got !== digest) {
      throw new ModuleError(
        'digest-mismatch',
        `${this.#files.path}/${blobPath(digest)}, of ${this.#shown}, has other bytes: expected ${digest}, got ${got}`,
      );
    }
    return bytes;
  }
}

/** Where a layout has a blob or manifest. */
export function blobPath(digest: Digest): string {
  return `blobs/sha256/${digest.slice('sha256:'.length)}`;
}

/** The manifests that a layout lists. @throws ModuleError as {@link LayoutFiles.read}, `manifest-invalid` */
export async function readLayoutIndex(files: LayoutFiles, shown: string): Promise<readonly Descriptor[]> {
  const bytes = await files.read('index.json', MAX_MANIFEST_BYTES, shown);
  const index = parseManifest(bytes, `the index.json of ${files.path}`, OCI_INDEX);
  return index.kind === 'index' ? index.manifests : [];
}
