// Artifacts on disk, as an OCI layout (https://github.com/opencontainers/image-spec/blob/main/image-layout.md).
import { open } from 'node:fs/promises';
import { join } from 'node:path';

import { type Digest, digestOf, isDigest } from '../digest.ts';
import { ModuleError, systemCode } from '../errors.ts';
import type { ProgressListener } from '../http/http-transfer.ts';
import type { ArtifactSource, RawManifest } from './artifact-source.ts';
import { type Descriptor, MAX_MANIFEST_BYTES, parseManifest } from './manifest.ts';

/** The annotation of an index that names a manifest. Tools write a tag, or a whole reference. */
const NAME_ANNOTATION = 'org.opencontainers.image.ref.name';

/** One repository of a layout folder. */
export class LayoutRepository implements ArtifactSource {
  readonly #folder: string;
  readonly #name: string;
  readonly #shown: string;

  /**
   * @param name `host/repository`, as in the names of the index
   * @param shown the artifact, for messages
   */
  constructor(folder: string, name: string, shown: string) {
    this.#folder = folder;
    this.#name = name;
    this.#shown = shown;
  }

  async manifest(reference: string): Promise<RawManifest> {
    const digest = isDigest(reference) ? reference : await this.#digestOfTag(reference);
    const bytes = await this.#read(digest, MAX_MANIFEST_BYTES);
    return { bytes, digest, contentType: undefined };
  }

  async blob({ digest, size }: Descriptor, onProgress?: ProgressListener): Promise<Uint8Array> {
    const bytes = await this.#read(digest, size);
    if (bytes.length !== size) {
      throw new ModuleError(
        'size-mismatch',
        `a blob of ${this.#shown} has another size than its manifest says: expected ${size} bytes, got ${bytes.length}`,
      );
    }
    onProgress?.(size, size);
    return bytes;
  }

  async #digestOfTag(tag: string): Promise<Digest> {
    const path = join(this.#folder, 'index.json');
    const index = parseManifest(await readBounded(path, MAX_MANIFEST_BYTES, this.#shown), path, undefined);
    const names = [`${this.#name}:${tag}`, tag];
    const manifests = index.kind === 'index' ? index.manifests : [];
    const found = names
      .map((name) => manifests.find(({ annotations }) => annotations.get(NAME_ANNOTATION) === name))
      .find((manifest) => manifest !== undefined);
    if (found === undefined) {
      throw new ModuleError(
        'source-not-found',
        `${this.#shown} is not in the OCI layout ${this.#folder}: expected ${NAME_ANNOTATION} ${names[0]} in its index.json`,
      );
    }
    return found.digest;
  }

  async #read(digest: Digest, maxBytes: number): Promise<Buffer> {
    const path = join(this.#folder, 'blobs', 'sha256', digest.slice('sha256:'.length));
    const bytes = await readBounded(path, maxBytes, this.#shown);
    const got = digestOf(bytes);
    if (got !== digest) {
      throw new ModuleError(
        'digest-mismatch',
        `${path}, of ${this.#shown}, has other bytes: expected ${digest}, got ${got}`,
      );
    }
    return bytes;
  }
}

async function readBounded(path: string, maxBytes: number, shown: string): Promise<Buffer> {
  try {
    await using file = await open(path);
    const status = await file.stat();
    if (!status.isFile() || status.size > maxBytes) {
      throw new ModuleError(
        'size-mismatch',
        `${path}, of ${shown}, has ${status.size} bytes: expected a file of at most ${maxBytes}`,
      );
    }
    return await file.readFile();
  } catch (error) {
    if (error instanceof ModuleError) {
      throw error;
    }
    const code = systemCode(error) ?? 'unknown error';
    throw new ModuleError(
      code === 'ENOENT' ? 'source-not-found' : 'file-unreadable',
      `${path}, of ${shown}, cannot be read (${code})`,
      { cause: error },
    );
  }
}
