// Conversions to and from Kubernetes' own admission policies, for commands. Their code is loaded on first use.
import { createRequire } from 'node:module';
import type * as celPolicy from './cel-policy/index.ts';
import type { ExportedPolicy, ExportOptions, ImportedPolicies, ImportOptions } from './cel-policy/index.ts';
import type { JsonObject } from './json-text.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const require = createRequire(import.meta.url);

/** Converts settings of `builtin:cel` to manifests that API servers evaluate themselves. Never throws. */
export function exportPolicy(settings: unknown, options: ExportOptions): ExportedPolicy {
  return (require(`./cel-policy/index.${extension}`) as typeof celPolicy).exportPolicy(settings, options);
}

/**
 * Converts ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings to ClusterAdmissionPolicies. Never
 * throws.
 */
export function importPolicies(manifests: readonly JsonObject[], options: ImportOptions = {}): ImportedPolicies {
  return (require(`./cel-policy/index.${extension}`) as typeof celPolicy).importPolicies(manifests, options);
}
