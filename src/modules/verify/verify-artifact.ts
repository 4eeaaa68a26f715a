import type { Digest } from '../digest.ts';
import { ModuleError } from '../errors.ts';
import type { ArtifactSource } from '../oci/artifact-source.ts';
import type { Verification } from '../verification.ts';

/**
 * Verifies that the signatures of an artifact satisfy the configuration.
 * @param digest of the manifest, or of the index, that a reference resolved to
 * @param shown the artifact, for messages
 * @throws ModuleError `signature-missing`, `signature-invalid`, `trust-root-unavailable`; as of {@link ArtifactSource}
 */
export async function verifyArtifact(
  _source: ArtifactSource,
  digest: Digest,
  shown: string,
  _verification: Verification,
): Promise<void> {
  throw new ModuleError(
    'signature-invalid',
    `${shown} (${digest}) cannot be verified: this version does not do that yet`,
  );
}
