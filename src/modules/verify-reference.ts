import type { Digest } from './reference/digest.ts';
import type { TransferOptions } from './http/http-transfer.ts';
import type { RegistryReference } from './reference/module-reference.ts';
import { versionOf, withRepository } from './oci/registry-source.ts';
import type { Verification } from './sources/verification.ts';

/**
 * Verifies the signatures of an artifact, and resolves with the digest of its manifest. No cache is used.
 * @param requiredBy where the configuration is, for messages. Default: verification.yml
 * @throws ModuleError `source-…`, `signature-…`, `trust-root-unavailable`
 */
export async function verifyReference(
  reference: RegistryReference,
  verification: Verification,
  options: TransferOptions,
  requiredBy?: string,
): Promise<Digest> {
  const { verifyArtifact } = await import('./verify/index.ts');
  return await withRepository(reference, options, async (source, { shown }) => {
    const { digest } = await source.manifest(versionOf(reference));
    await verifyArtifact(source, digest, shown, verification, requiredBy);
    return digest;
  });
}
