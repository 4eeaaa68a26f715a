// Writes an OCI layout (https://github.com/opencontainers/image-spec/blob/main/image-layout.md) to a folder.
import { createHash } from 'node:crypto';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

export const IMAGE_INDEX = 'application/vnd.oci.image.index.v1+json';
export const IMAGE_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const NAME_ANNOTATION = 'org.opencontainers.image.ref.name';
/** https://github.com/opencontainers/image-spec/blob/main/manifest.md#guidance-for-an-empty-descriptor */
const EMPTY = { mediaType: 'application/vnd.oci.empty.v1+json', content: '{}' } as const;

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  /** Bytes. */
  readonly size: number;
  readonly artifactType?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly platform?: object;
}

/** An artifact about an image. */
export interface Referrer {
  readonly subject: Descriptor;
  readonly artifactType: string;
  readonly content: Uint8Array;
  readonly title: string;
}

export class OciLayoutWriter {
  readonly #folder: string;
  readonly #manifests: Descriptor[] = [];

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Replaces a folder by an empty layout. */
  static async create(folder: string): Promise<OciLayoutWriter> {
    await rm(folder, { recursive: true, force: true });
    await mkdir(join(folder, 'blobs', 'sha256'), { recursive: true });
    await writeFile(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
    return new OciLayoutWriter(folder);
  }

  async blob(mediaType: string, content: Uint8Array | string): Promise<Descriptor> {
    const bytes = Buffer.from(content);
    const digest = digestOf(bytes);
    await writeFile(join(this.#folder, 'blobs', 'sha256', digest.slice('sha256:'.length)), bytes);
    return { mediaType, digest, size: bytes.length };
  }

  /** Writes a manifest or index. */
  async manifest(mediaType: string, fields: object): Promise<Descriptor> {
    return await this.blob(mediaType, JSON.stringify({ schemaVersion: 2, mediaType, ...fields }));
  }

  /** Lists an artifact about an image that is in the layout. */
  async refer({ subject, artifactType, content, title }: Referrer): Promise<void> {
    const config = await this.blob(EMPTY.mediaType, EMPTY.content);
    const layer = await this.blob(artifactType, content);
    const annotations = { 'org.opencontainers.image.title': title };
    const { mediaType, digest, size } = subject;
    const manifest = await this.manifest(IMAGE_MANIFEST, {
      artifactType,
      config,
      layers: [{ ...layer, annotations }],
      subject: { mediaType, digest, size },
    });
    this.#manifests.push({ ...manifest, artifactType });
  }

  /** Lists an artifact under a tag. */
  tag(artifact: Descriptor, tag: string): void {
    this.#manifests.push({ ...artifact, annotations: { [NAME_ANNOTATION]: tag } });
  }

  async end(): Promise<void> {
    const index = { schemaVersion: 2, mediaType: IMAGE_INDEX, manifests: this.#manifests };
    await writeFile(join(this.#folder, 'index.json'), JSON.stringify(index));
  }
}

export function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
