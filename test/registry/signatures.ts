// Stores signatures of artifacts in a real registry, as cosign does.
import { BUNDLE_TYPE, INDEX_TYPE, type SignatureLayer } from '../../src/modules/testing/test-signer.ts';
import { MANIFEST_TYPE, type Registry } from './registry-lab.ts';

const LAYER_TYPE = 'application/vnd.dev.cosign.simplesigning.v1+json';
const EMPTY_TYPE = 'application/vnd.oci.empty.v1+json';

/** Stores signatures in cosign's older layout, under the tag of the artifact's digest. */
export async function attachLayers(
  registry: Registry,
  repository: string,
  digest: string,
  signatures: readonly SignatureLayer[],
): Promise<void> {
  const config = await registry.blob(repository, Buffer.from('{}'), 'application/vnd.oci.image.config.v1+json');
  const layers = await Promise.all(
    signatures.map(async ({ claim, annotations }) => ({
      ...(await registry.blob(repository, claim, LAYER_TYPE)),
      annotations,
    })),
  );
  await registry.manifest(repository, `${digest.replace(':', '-')}.sig`, { mediaType: MANIFEST_TYPE, config, layers });
}

/**
 * Stores bundles as referrers. The registry has no API for these, so they are listed under a tag.
 * @param size of the manifest, which other clients look at
 */
export async function attachBundles(
  registry: Registry,
  repository: string,
  digest: string,
  bundles: readonly object[],
  size: number = 1,
): Promise<void> {
  const config = await registry.blob(repository, Buffer.from('{}'), EMPTY_TYPE);
  const subject = { mediaType: MANIFEST_TYPE, digest, size };
  const manifests = await Promise.all(
    bundles.map(async (bundle) => {
      const layers = [await registry.blob(repository, Buffer.from(JSON.stringify(bundle)), BUNDLE_TYPE)];
      const content = { mediaType: MANIFEST_TYPE, artifactType: BUNDLE_TYPE, config, layers, subject };
      return { ...(await registry.manifest(repository, undefined, content)), artifactType: BUNDLE_TYPE };
    }),
  );
  await registry.manifest(repository, digest.replace(':', '-'), { mediaType: INDEX_TYPE, manifests });
}
