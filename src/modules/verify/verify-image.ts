import type { Digest } from '../digest.ts';
import type { TransferOptions } from '../http/http-transfer.ts';
import type { RegistryReference } from '../module-reference.ts';
import { versionOf, withRepository } from '../oci/registry-source.ts';
import type { Verification } from '../verification.ts';
import { verifyArtifact } from './verify-artifact.ts';

/**
 * Verifies the signatures of an image. Returns the digest that was verified.
 * @throws ModuleError as of {@link verifyArtifact} and of reading the image
 */
export async function verifyImage(
  reference: RegistryReference,
  verification: Verification,
  options: TransferOptions,
): Promise<Digest> {
  return await withRepository(reference, options, async (source, { shown }) => {
    const { digest } = await source.manifest(versionOf(reference));
    await verifyArtifact(source, digest, shown, verification, 'what the policy requires');
    return digest;
  });
}
