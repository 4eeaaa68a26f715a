// Files with the metadata of a policy, `metadata.yml`.
import { parseMetadata, type PolicyMetadata, requireSupportedVersion } from '../../modules/index.ts';
import { errorText } from '../../values/index.ts';
import { readDocument } from '../document.ts';
import { CliError } from '../errors.ts';
import type { Progress } from '../progress.ts';

/** Keys of a metadata file. `contextAware` is obsolete and has no effect. */
const METADATA_KEYS = new Set([
  'protocolVersion',
  'rules',
  'annotations',
  'mutating',
  'backgroundAudit',
  'executionMode',
  'policyType',
  'contextAware',
  'contextAwareResources',
  'hostCapabilities',
  'minimumKubewardenVersion',
]);

/** @throws CliError with the file and the field */
export async function readMetadataFile(path: string, progress: Progress): Promise<PolicyMetadata> {
  const { value } = await readDocument(path, 'core');
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new CliError(`${path} has no metadata: expected a mapping with rules, mutating, annotations, …`);
  }
  for (const key of Object.keys(value)) {
    if (!METADATA_KEYS.has(key)) {
      const meant = [...METADATA_KEYS].find(
        (known) => known.toLowerCase() === key.toLowerCase().replaceAll(/[_-]/g, ''),
      );
      progress.line(
        `note: ${path}: ${key} is not a key of metadata and is ignored${meant === undefined ? '' : `; did you mean ${meant}?`}`,
      );
    }
  }
  try {
    const metadata = parseMetadata(value);
    requireSupportedVersion(metadata);
    return metadata;
  } catch (error) {
    throw new CliError(errorText(error).replace(/^the module's metadata is invalid at /, `${path}: `), {
      cause: error,
    });
  }
}
