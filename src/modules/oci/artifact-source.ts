import type { Digest } from '../reference/digest.ts';
import { ModuleError } from '../reference/errors.ts';
import type { ProgressListener } from '../http/http-transfer.ts';
import { type Descriptor, type Manifest, moduleManifest, parseManifest } from './manifest.ts';

/** A manifest or index as bytes. */
export interface RawManifest {
  readonly bytes: Uint8Array;
  readonly digest: Digest;
  readonly contentType: string | undefined;
}

/** Where the artifacts of one repository are: in a registry, or in an OCI layout on disk. */
export interface ArtifactSource {
  /**
   * A manifest by tag or digest.
   * @throws ModuleError `source-…`, `digest-mismatch`, `manifest-invalid`
   */
  manifest(reference: string): Promise<RawManifest>;
  /** The content of a descriptor, verified. @throws ModuleError `source-…`, `size-mismatch`, `digest-mismatch` */
  blob(descriptor: Descriptor, onProgress?: ProgressListener): Promise<Uint8Array>;
  /**
   * The manifests that name this one as their subject, such as its signatures.
   * @throws ModuleError `source-…`, `manifest-invalid`
   */
  referrers(digest: Digest): Promise<readonly Descriptor[]>;
}

/** The tag of the list of referrers where a registry has no API for them (distribution-spec, "Referrers Tag Schema"). */
export function referrersTag(digest: Digest): string {
  return digest.replace(':', '-');
}

/** The tag of cosign's signatures. */
export function signatureTag(digest: Digest): string {
  return `${referrersTag(digest)}.sig`;
}

/** The list of referrers under {@link referrersTag}; empty if there is none. @throws ModuleError as of {@link ArtifactSource} */
export async function taggedReferrers(
  source: Pick<ArtifactSource, 'manifest'>,
  digest: Digest,
  shown: string,
): Promise<readonly Descriptor[]> {
  try {
    const { bytes, contentType } = await source.manifest(referrersTag(digest));
    const list = parseManifest(bytes, shown, contentType);
    return list.kind === 'index' ? list.manifests : [];
  } catch (error) {
    if (error instanceof ModuleError && error.code === 'source-not-found') {
      return [];
    }
    throw error;
  }
}

/** Most indexes on the way to a manifest: a registry may answer with any number of them. */
const MAX_INDEXES = 2;

/** An artifact: the digest that its reference resolves to, and its manifest. */
export interface Artifact {
  /** Of the index, if the reference names one. */
  readonly digest: Digest;
  readonly manifest: Extract<Manifest, { kind: 'manifest' }>;
}

/**
 * Resolves a tag or digest to a manifest, also through an index.
 * @param shown the artifact, for messages
 * @throws ModuleError as of {@link ArtifactSource.manifest}, `media-type-unsupported`
 */
export async function resolveArtifact(source: ArtifactSource, reference: string, shown: string): Promise<Artifact> {
  const first = await source.manifest(reference);
  let manifest = parseManifest(first.bytes, shown, first.contentType);
  for (let indexes = 0; manifest.kind === 'index'; indexes++) {
    if (indexes === MAX_INDEXES) {
      throw new ModuleError(
        'manifest-invalid',
        `${shown} is an index of indexes: expected a manifest after at most ${MAX_INDEXES} indexes`,
      );
    }
    const { digest } = moduleManifest(manifest.manifests, shown);
    const next = await source.manifest(digest);
    manifest = parseManifest(next.bytes, shown, next.contentType);
  }
  return { digest: first.digest, manifest };
}
