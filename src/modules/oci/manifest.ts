// Manifests and indexes of artifacts (https://github.com/opencontainers/image-spec), and the rule by which one of their layers is
// the content of an artifact.
import { isJsonObject, type JsonObject, own, parseJson, shortened, textOf, valueAt } from '../../values/index.ts';
import { ModuleError } from '../reference/errors.ts';
import type { ArtifactContent } from './artifact-content.ts';
import { type Digest, isDigest } from '../reference/digest.ts';

/** Largest manifest: registries accept 4 MiB (distribution-spec, "Pushing Manifests"). Bytes. */
export const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;
/** Most layers, or manifests of an index: far more than artifacts have. */
const MAX_DESCRIPTORS = 1_000;

export const OCI_MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
/** Also the type of lists of referrers. */
export const OCI_INDEX = 'application/vnd.oci.image.index.v1+json';
const DOCKER_MANIFEST = 'application/vnd.docker.distribution.manifest.v2+json';
const DOCKER_INDEX = 'application/vnd.docker.distribution.manifest.list.v2+json';
/** For the header `Accept`. */
export const MANIFEST_MEDIA_TYPES: readonly string[] = [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_INDEX];
/** A reference from a manifest to other content. */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  /** Bytes. */
  readonly size: number;
  readonly annotations: ReadonlyMap<string, string>;
  /** Of a manifest in a list of referrers; empty if it is not given. */
  readonly artifactType: string;
  /** The processor of a manifest of an index. */
  readonly architecture: string;
}

/** The content of a manifest, or of an index of manifests. */
export type Manifest =
  | {
      readonly kind: 'manifest';
      readonly config: Descriptor | undefined;
      readonly layers: readonly Descriptor[];
      /** Empty if it is not given. */
      readonly artifactType: string;
      /** The artifact that this one is about, such as the one that it signs. */
      readonly subject: Digest | undefined;
    }
  | { readonly kind: 'index'; readonly manifests: readonly Descriptor[] };

/**
 * Parses a manifest.
 * @param shown the artifact, for messages
 * @param contentType used if the manifest does not name its type
 * @throws ModuleError `manifest-invalid`, `media-type-unsupported`
 */
export function parseManifest(bytes: Uint8Array, shown: string, contentType: string | undefined): Manifest {
  const manifest = manifestObject(bytes, shown);
  const named = own(manifest, 'mediaType');
  const mediaType = typeof named === 'string' ? named : (contentType?.split(';', 1)[0]?.trim() ?? OCI_MANIFEST);
  switch (mediaType) {
    case OCI_MANIFEST:
    case DOCKER_MANIFEST: {
      const config = own(manifest, 'config');
      return {
        kind: 'manifest',
        config: config === undefined ? undefined : descriptor(config, 'config', shown),
        layers: descriptors(manifest, 'layers', shown),
        artifactType: textOf(own(manifest, 'artifactType')),
        subject: subjectOf(own(manifest, 'subject')),
      };
    }
    case OCI_INDEX:
    case DOCKER_INDEX:
      return { kind: 'index', manifests: descriptors(manifest, 'manifests', shown) };
    default:
      throw new ModuleError(
        'media-type-unsupported',
        `${shown} is of the media type ${quoted(mediaType)}: expected an OCI manifest or index (${OCI_MANIFEST})`,
      );
  }
}

/** The only manifest of an index, or the only one for WebAssembly. @throws ModuleError `media-type-unsupported` */
export function moduleManifest(manifests: readonly Descriptor[], shown: string): Descriptor {
  const forWasm = manifests.filter(({ architecture }) => architecture === 'wasm');
  const [only, ...more] = manifests.length === 1 ? manifests : forWasm;
  if (only === undefined || more.length > 0) {
    throw new ModuleError(
      'media-type-unsupported',
      `${shown} is an index of ${manifests.length} artifacts, ${forWasm.length} of them with the architecture "wasm": expected one. Name the artifact by its digest`,
    );
  }
  return only;
}

/** The only layer with the content of an artifact. @throws ModuleError `media-type-unsupported` */
export function contentLayer(
  layers: readonly Descriptor[],
  { mediaTypes, noun }: Pick<ArtifactContent, 'mediaTypes' | 'noun'>,
  shown: string,
): Descriptor {
  const found = layers.filter(({ mediaType }) => mediaTypes.includes(mediaType));
  const [first, ...more] = found;
  if (first === undefined) {
    const types = [...new Set(layers.map(({ mediaType }) => quoted(mediaType)))].slice(0, 5);
    throw new ModuleError(
      'media-type-unsupported',
      `${shown} contains no ${noun}: expected a layer of the media type ${mediaTypes[0]}, got ` +
        (types.length === 0 ? 'no layer' : types.join(', ')),
    );
  }
  if (more.length > 0) {
    throw new ModuleError(
      'media-type-unsupported',
      `${shown} contains ${found.length} ${noun}s: expected one layer of such a media type`,
    );
  }
  return first;
}

function manifestObject(bytes: Uint8Array, shown: string): JsonObject {
  const text = Buffer.from(bytes).toString('utf8');
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    const what = /^\s*</.test(text) ? 'got an HTML or XML page: is this a registry?' : 'got other text';
    throw new ModuleError('manifest-invalid', `the manifest of ${shown} is not JSON: ${what}`, { cause: error });
  }
  if (!isJsonObject(value) || own(value, 'schemaVersion') !== 2) {
    throw new ModuleError('manifest-invalid', `the manifest of ${shown} is malformed: expected "schemaVersion": 2`);
  }
  return value;
}

function descriptors(manifest: JsonObject, field: string, shown: string): readonly Descriptor[] {
  const list = own(manifest, field);
  if (!Array.isArray(list) || list.length > MAX_DESCRIPTORS) {
    throw new ModuleError(
      'manifest-invalid',
      `the manifest of ${shown} is malformed: expected a list of at most ${MAX_DESCRIPTORS} ${field}`,
    );
  }
  return list.map((entry, index) => descriptor(entry, `${field}[${index}]`, shown));
}

function descriptor(value: unknown, field: string, shown: string): Descriptor {
  const object: JsonObject = isJsonObject(value) ? value : {};
  const [mediaType, digest, size] = ['mediaType', 'digest', 'size'].map((name) => own(object, name));
  if (typeof mediaType !== 'string' || !isDigest(digest) || !isSize(size)) {
    throw new ModuleError(
      'manifest-invalid',
      `the manifest of ${shown} is malformed: expected ${field} with mediaType, digest (sha256:…) and size`,
    );
  }
  return {
    mediaType,
    digest,
    size,
    annotations: annotationsOf(own(object, 'annotations')),
    artifactType: textOf(own(object, 'artifactType')),
    architecture: textOf(valueAt(object, 'platform', 'architecture')),
  };
}

function subjectOf(value: unknown): Digest | undefined {
  const digest = valueAt(value, 'digest');
  return isDigest(digest) ? digest : undefined;
}

function annotationsOf(value: unknown): ReadonlyMap<string, string> {
  const entries = isJsonObject(value) ? Object.entries(value) : [];
  return new Map(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

function isSize(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function quoted(mediaType: string): string {
  return JSON.stringify(shortened(mediaType, 100));
}
