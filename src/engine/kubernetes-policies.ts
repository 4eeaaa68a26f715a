// Conversions to and from Kubernetes' own admission policies, for commands. Their code is loaded on first use.
import type { ExportedPolicy, ExportOptions, ImportedPolicies, ImportOptions } from './cel-policy/index.ts';
import type { JsonObject } from './values/json-text.ts';

/** Converts settings of `builtin:cel` to manifests that API servers evaluate themselves. Never rejects. */
export async function exportPolicy(settings: unknown, options: ExportOptions): Promise<ExportedPolicy> {
  const celPolicy = await import('./cel-policy/index.ts');
  return celPolicy.exportPolicy(settings, options);
}

/**
 * Converts ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings to ClusterAdmissionPolicies. Never
 * rejects.
 */
export async function importPolicies(
  manifests: readonly JsonObject[],
  options: ImportOptions = {},
): Promise<ImportedPolicies> {
  const celPolicy = await import('./cel-policy/index.ts');
  return celPolicy.importPolicies(manifests, options);
}
