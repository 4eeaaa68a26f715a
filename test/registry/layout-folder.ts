// A folder with an OCI layout (https://github.com/opencontainers/image-spec/blob/main/image-layout.md) as the mirror of a registry.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digestOf } from '../../src/modules/index.ts';

const MANIFEST_TYPE = 'application/vnd.oci.image.manifest.v1+json';

export class LayoutFolder implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'portcullis-layout-'));
  /** Digest and size of a manifest by `host/repository:tag`. */
  readonly #tags = new Map<string, { readonly digest: string; readonly size: number }>();

  constructor() {
    mkdirSync(join(this.folder, 'blobs', 'sha256'), { recursive: true });
    writeFileSync(join(this.folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  }

  /** Writes a `sources.yml` in which the folder is the mirror of a host, and returns its path. */
  sourcesFile(host: string): string {
    const path = join(this.folder, 'sources.yml');
    writeFileSync(path, JSON.stringify({ mirrors: { [host]: [`file://${this.folder}`] } }));
    return path;
  }

  /** Stores a module, moves the tag to it, and returns the digest of its manifest. */
  put(name: string, module: Uint8Array): string {
    const layer = { mediaType: 'application/vnd.wasm.content.layer.v1+wasm', ...this.#blob(module) };
    const config = { mediaType: 'application/vnd.wasm.config.v1+json', ...this.#blob(Buffer.from('{}')) };
    const manifest = { schemaVersion: 2, mediaType: MANIFEST_TYPE, config, layers: [layer] };
    const blob = this.#blob(Buffer.from(JSON.stringify(manifest)));
    this.#tags.set(name, blob);
    const manifests = [...this.#tags].map(([tagged, { digest, size }]) => ({
      mediaType: MANIFEST_TYPE,
      digest,
      size,
      annotations: { 'org.opencontainers.image.ref.name': tagged },
    }));
    writeFileSync(join(this.folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests }));
    return blob.digest;
  }

  /** The file of a blob. */
  file(digest: string): string {
    return join(this.folder, 'blobs', 'sha256', digest.slice('sha256:'.length));
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  #blob(bytes: Uint8Array): { digest: string; size: number } {
    const digest = digestOf(bytes);
    writeFileSync(this.file(digest), bytes);
    return { digest, size: bytes.length };
  }
}
