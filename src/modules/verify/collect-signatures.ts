import type { Digest } from '../reference/digest.ts';
import { ModuleError } from '../reference/errors.ts';
import { type ArtifactSource, signatureTag } from '../oci/artifact-source.ts';
import { type Descriptor, type Manifest, parseManifest } from '../oci/manifest.ts';
import { BUNDLE_MEDIA_TYPE, bundleSignature, SIGN_PREDICATE_TYPE, type SignedArtifact } from './bundle-signature.ts';
import { LAYER_MEDIA_TYPE, layerSignature } from './layer-signature.ts';
import type { Signature } from './signature.ts';

/** Most manifests and layers of signatures that are read: everyone who may push to the repository may add some. */
const MAX_READS = 100;
/** Largest bundle, or claim. Bytes. */
const MAX_SIGNATURE_BYTES = 128 * 1024;
/** Most bytes of all signatures and their manifests. */
const MAX_TOTAL_BYTES = 4 * 1024 * 1024;

const TOO_MANY = `there are more signatures than are read: at most ${MAX_READS} manifests and layers, with ${MAX_TOTAL_BYTES} bytes`;

const LAYER_ARTIFACT_TYPE = 'application/vnd.dev.cosign.artifact.sig.v1+json';
const PREDICATE_ANNOTATION = 'dev.sigstore.bundle.predicateType';

/** The signatures of an artifact. */
export interface CollectedSignatures {
  readonly signatures: readonly Signature[];
  /** What is wrong with the others, for a message. */
  readonly problems: readonly string[];
  /** Why a signature could not be read, if that may be different later. */
  readonly failure: ModuleError | undefined;
}

/**
 * Reads the signatures of an artifact: bundles and layers of its referrers, and the layers of cosign's tag.
 * @throws ModuleError as of {@link ArtifactSource}, when they cannot be listed
 */
export async function collectSignatures(
  source: ArtifactSource,
  digest: Digest,
  shown: string,
): Promise<CollectedSignatures> {
  return await new SignatureCollector(source, digest, shown).collect();
}

class SignatureCollector {
  readonly #source: ArtifactSource;
  readonly #digest: Digest;
  readonly #shown: string;
  readonly #artifact: SignedArtifact;
  readonly #signatures: Signature[] = [];
  readonly #problems: string[] = [];
  #failure: ModuleError | undefined;
  #reads = 0;
  #bytes = 0;

  constructor(source: ArtifactSource, digest: Digest, shown: string) {
    this.#source = source;
    this.#digest = digest;
    this.#shown = shown;
    let manifest: Promise<Uint8Array> | undefined;
    this.#artifact = {
      digest,
      manifest: async () => await (manifest ??= source.manifest(digest).then(({ bytes }) => bytes)),
    };
  }

  async collect(): Promise<CollectedSignatures> {
    for (const referrer of await this.#source.referrers(this.#digest)) {
      if (isSignature(referrer)) {
        await this.#add(referrer.digest, async () => await this.#referrer(referrer));
      }
    }
    const tagged = await this.#tagged();
    if (tagged !== undefined) {
      await this.#layers(tagged);
    }
    return { signatures: this.#signatures, problems: this.#problems, failure: this.#failure };
  }

  async #tagged(): Promise<Manifest | undefined> {
    try {
      const { bytes, contentType } = await this.#source.manifest(signatureTag(this.#digest));
      return parseManifest(bytes, `the signatures of ${this.#shown}`, contentType);
    } catch (error) {
      if (error instanceof ModuleError && error.code === 'source-not-found') {
        return undefined;
      }
      throw error;
    }
  }

  async #referrer({ digest }: Descriptor): Promise<void> {
    const { bytes, contentType } = await this.#source.manifest(digest);
    this.#count(bytes);
    await this.#layers(parseManifest(bytes, `a signature of ${this.#shown}`, contentType));
  }

  async #layers(manifest: Manifest): Promise<void> {
    for (const layer of manifest.kind === 'manifest' ? manifest.layers : []) {
      const isBundle = layer.mediaType.startsWith(BUNDLE_MEDIA_TYPE);
      if (isBundle || layer.mediaType === LAYER_MEDIA_TYPE) {
        await this.#add(layer.digest, async () => await this.#layer(layer, isBundle));
      }
    }
  }

  async #layer(layer: Descriptor, isBundle: boolean): Promise<void> {
    const shown = shownSignature(layer.digest);
    if (layer.size > MAX_SIGNATURE_BYTES) {
      this.#problems.push(`${shown} is too large: expected at most ${MAX_SIGNATURE_BYTES} bytes`);
      return;
    }
    const bytes = await this.#source.blob(layer);
    this.#count(bytes);
    const signature = isBundle
      ? await bundleSignature(Buffer.from(bytes).toString('utf8'), shown, this.#artifact)
      : layerSignature(layer, bytes, shown, this.#digest);
    if (typeof signature === 'string') {
      this.#problems.push(`${shown} ${signature}`);
    } else {
      this.#signatures.push(signature);
    }
  }

  /** Reads one signature, or one artifact with signatures. A defective one must not hide the others. */
  async #add(digest: Digest, read: () => Promise<void>): Promise<void> {
    if (this.#reads >= MAX_READS || this.#bytes > MAX_TOTAL_BYTES) {
      if (!this.#problems.includes(TOO_MANY)) {
        this.#problems.push(TOO_MANY);
      }
      return;
    }
    this.#reads++;
    try {
      await read();
    } catch (error) {
      if (!(error instanceof ModuleError)) {
        throw error;
      }
      this.#problems.push(`${shownSignature(digest)} cannot be read: ${error.message}`);
      if (error.isFetchError && error.code !== 'source-not-found') {
        this.#failure ??= error;
      }
    }
  }

  #count({ length }: Uint8Array): void {
    this.#bytes += length;
  }
}

/** Whether a referrer may be a signature; of unknown types that shows in its layers. */
function isSignature({ artifactType, annotations }: Descriptor): boolean {
  const predicate = annotations.get(PREDICATE_ANNOTATION);
  return (
    (artifactType === '' || artifactType === LAYER_ARTIFACT_TYPE || artifactType.startsWith(BUNDLE_MEDIA_TYPE)) &&
    (predicate === undefined || predicate === SIGN_PREDICATE_TYPE)
  );
}

function shownSignature(digest: Digest): string {
  return `signature ${digest.slice('sha256:'.length, 'sha256:'.length + 12)}`;
}
