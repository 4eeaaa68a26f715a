// Manifests and configurations of container images, for policies that check the images of a pod.
import type { Digest } from '../reference/digest.ts';
import { ModuleError } from '../reference/errors.ts';
import type { TransferOptions } from '../http/http-transfer.ts';
import type { RegistryReference } from '../reference/module-reference.ts';
import { isJsonObject, type JsonObject, type JsonValue, own, parseJson, textOf } from '../../values/index.ts';
import type { ArtifactSource, RawManifest } from './artifact-source.ts';
import { parseManifest } from './manifest.ts';
import { versionOf, withRepository } from './registry-source.ts';

/** Largest configuration of an image: real ones have some 10 KB, mostly environment, labels and history. Bytes. */
export const MAX_IMAGE_CONFIG_BYTES = 4 * 1024 * 1024;

/** An operating system and processor, by the names of Go. */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
}

/** The manifest or index of an image: the fields of the OCI specification, and no others. */
export interface ImageManifest {
  /** The digest that the name resolves to. */
  readonly digest: Digest;
  readonly manifest: JsonObject;
}

/** An image for one platform. */
export interface ImageWithConfig {
  /** Of the manifest, also if the name is that of an index. */
  readonly digest: Digest;
  readonly manifest: JsonObject;
  readonly config: JsonObject;
}

/**
 * The manifest or index that a name stands for.
 * @throws ModuleError `source-…`, `credentials-invalid`, `token-invalid`, `manifest-invalid`, `media-type-unsupported`,
 * `digest-mismatch`; the signal's reason
 */
export async function readImage(reference: RegistryReference, options: TransferOptions): Promise<ImageManifest> {
  return await withRepository(reference, options, async (source, { shown }) => {
    const raw = await source.manifest(versionOf(reference));
    return { digest: raw.digest, manifest: readFields(raw, shown).fields };
  });
}

/**
 * The manifest of an image and its configuration. An index leads to its first manifest for the platform.
 * @throws ModuleError as {@link readImage}, `size-mismatch`
 */
export async function readImageConfig(
  reference: RegistryReference,
  platform: Platform,
  options: TransferOptions,
): Promise<ImageWithConfig> {
  return await withRepository(reference, options, async (source, { shown }) => {
    const raw = await manifestFor(source, versionOf(reference), platform, shown);
    const { fields, manifest } = readFields(raw, shown);
    if (manifest.kind === 'index') {
      throw new ModuleError('manifest-invalid', `${shown} is an index of indexes: expected an index of manifests`);
    }
    const { config } = manifest;
    if (config === undefined || config.size > MAX_IMAGE_CONFIG_BYTES) {
      throw new ModuleError(
        'manifest-invalid',
        `the manifest of ${shown} is not that of an image: expected a configuration of at most ${MAX_IMAGE_CONFIG_BYTES} bytes, got ${config === undefined ? 'none' : config.size}`,
      );
    }
    const bytes = await source.blob(config);
    return { digest: raw.digest, manifest: fields, config: parseConfig(bytes, shown) };
  });
}

/** The platform whose images run here: that of Linux nodes like this one. */
export function hostPlatform(): Platform {
  return { os: 'linux', architecture: GO_ARCHITECTURES[process.arch] ?? process.arch };
}

/** Go's names of processors, where Node has others. */
const GO_ARCHITECTURES: Readonly<Partial<Record<NodeJS.Architecture, string>>> = {
  x64: 'amd64',
  ia32: '386',
  ppc64: 'ppc64le',
  mipsel: 'mipsle',
};

async function manifestFor(
  source: ArtifactSource,
  version: string,
  { os, architecture }: Platform,
  shown: string,
): Promise<RawManifest> {
  const raw = await source.manifest(version);
  const { fields, manifest } = readFields(raw, shown);
  if (manifest.kind === 'manifest') {
    return raw;
  }
  const entries = Array.isArray(fields.manifests) ? fields.manifests : [];
  const position = entries.findIndex((entry) => {
    const platform = isJsonObject(entry) ? entry.platform : undefined;
    return isJsonObject(platform) && platform.os === os && platform.architecture === architecture;
  });
  const found = manifest.manifests[position];
  if (found === undefined) {
    throw new ModuleError(
      'media-type-unsupported',
      `${shown} is an index of ${entries.length} images, none of them for ${os}/${architecture}: name the digest of one of them`,
      { tenantMessage: `the image is an index without an image for ${os}/${architecture}` },
    );
  }
  return await source.manifest(found.digest);
}

/** The parsed manifest, and its known fields for the answer. */
function readFields(
  { bytes, contentType }: RawManifest,
  shown: string,
): { manifest: ReturnType<typeof parseManifest>; fields: JsonObject } {
  const manifest = parseManifest(bytes, shown, contentType);
  const object = parseJson(Buffer.from(bytes).toString('utf8'));
  const mediaType = textOf(own(object as JsonObject, 'mediaType')) || contentType?.split(';', 1)[0]?.trim();
  const known = (manifest.kind === 'index' ? INDEX : IMAGE)(object);
  const fields = isJsonObject(known) ? known : {};
  // Go's SDK distinguishes manifests and indexes by this field, which manifests may lack.
  return { manifest, fields: mediaType === undefined ? fields : { ...fields, mediaType } };
}

function parseConfig(bytes: Uint8Array, shown: string): JsonObject {
  let config: unknown;
  try {
    config = parseJson(Buffer.from(bytes).toString('utf8'));
  } catch (error) {
    throw new ModuleError('manifest-invalid', `the configuration of ${shown} is not JSON`, { cause: error });
  }
  if (!isJsonObject(config)) {
    throw new ModuleError('manifest-invalid', `the configuration of ${shown} is malformed: expected an object`);
  }
  return config;
}

/** The part of a value that has a type; undefined if it has another one. */
type Shape = (value: unknown) => JsonValue | undefined;

const text: Shape = (value) => (typeof value === 'string' ? value : undefined);
const number: Shape = (value) => (typeof value === 'number' ? value : undefined);

function listOf(shape: Shape): Shape {
  return (value) => (Array.isArray(value) ? value.map(shape).filter((element) => element !== undefined) : undefined);
}

function objectOf(fields: Readonly<Record<string, Shape>>): Shape {
  return (value) => (isJsonObject(value) ? picked(value, Object.entries(fields)) : undefined);
}

const mapOfTexts: Shape = (value) =>
  isJsonObject(value)
    ? picked(
        value,
        Object.keys(value).map((key) => [key, text] as const),
      )
    : undefined;

function picked(object: JsonObject, fields: readonly (readonly [string, Shape])[]): JsonObject {
  return Object.fromEntries(
    fields.flatMap(([name, shape]) => {
      const value = shape(own(object, name));
      return value === undefined ? [] : [[name, value]];
    }),
  );
}

const PLATFORM = objectOf({
  architecture: text,
  os: text,
  'os.version': text,
  'os.features': listOf(text),
  variant: text,
  features: listOf(text),
});
const DESCRIPTOR = objectOf({
  mediaType: text,
  digest: text,
  size: number,
  urls: listOf(text),
  annotations: mapOfTexts,
  artifactType: text,
  platform: PLATFORM,
});
const COMMON = { schemaVersion: number, mediaType: text, artifactType: text };
const IMAGE = objectOf({
  ...COMMON,
  config: DESCRIPTOR,
  layers: listOf(DESCRIPTOR),
  subject: DESCRIPTOR,
  annotations: mapOfTexts,
});
const INDEX = objectOf({
  ...COMMON,
  manifests: listOf(DESCRIPTOR),
  subject: DESCRIPTOR,
  annotations: mapOfTexts,
});
