// Kubernetes' own admission policies, for commands. Their code is loaded on first use.
import { createRequire } from 'node:module';
import type * as celPolicy from './cel-policy/index.ts';
import type {
  ExportedPolicy,
  ExportOptions,
  ImportedPolicies,
  ImportOptions,
  ManifestOptions,
  ManifestVerdict,
} from './cel-policy/index.ts';
import type { JsonObject } from './json-text.ts';
import type * as manifestsGuest from './manifests-guest.ts';
import type { PolicyGuest } from './policy-guest.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const require = createRequire(import.meta.url);

/** A guest that gives the verdicts of an API server with these manifests. */
export interface KubernetesPolicyGuest extends PolicyGuest {
  /** Policies and bindings without effect, and the reasons. */
  readonly notes: readonly string[];
  /**
   * Whether any policy with a binding is for the request of a review, match conditions aside. A match that fails counts.
   * @param requestJson an AdmissionRequest, in UTF-8
   */
  matches(requestJson: Buffer): boolean;
  /**
   * The answer of an API server.
   * @param requestJson an AdmissionRequest, in UTF-8
   */
  answer(requestJson: Buffer): ManifestVerdict;
}

/**
 * A guest for ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings. Namespaces and parameters
 * are looked up among the manifests. Throws EngineError `guest-error` with all mistakes in the manifests.
 */
export function createManifestsGuest(
  documents: readonly unknown[],
  options: ManifestOptions = {},
): KubernetesPolicyGuest {
  const { ManifestsGuest } = require(`./manifests-guest.${extension}`) as typeof manifestsGuest;
  return new ManifestsGuest(documents, options);
}

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
