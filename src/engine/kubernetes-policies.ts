// What commands do with Kubernetes' own admission policies. The code behind it is loaded when it is first needed.
import { createRequire } from 'node:module';
import type * as celPolicy from './cel-policy/index.ts';
import type { ExportedPolicy, ExportOptions, ManifestOptions } from './cel-policy/index.ts';
import type * as manifestsGuest from './manifests-guest.ts';
import type { PolicyGuest } from './policy-guest.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const require = createRequire(import.meta.url);

/** A guest that answers as an API server with these manifests. */
export interface KubernetesPolicyGuest extends PolicyGuest {
  /** What has no effect, and why. */
  readonly notes: readonly string[];
}

/**
 * A guest for ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings; namespaces and parameters
 * are looked up among the manifests. Throws EngineError `guest-error` with everything that is wrong with them.
 */
export function createManifestsGuest(
  documents: readonly unknown[],
  options: ManifestOptions = {},
): KubernetesPolicyGuest {
  const { ManifestsGuest } = require(`./manifests-guest.${extension}`) as typeof manifestsGuest;
  return new ManifestsGuest(documents, options);
}

/** Settings of `builtin:cel` as manifests for API servers that can run them themselves. Never throws. */
export function exportPolicy(settings: unknown, options: ExportOptions): ExportedPolicy {
  return (require(`./cel-policy/index.${extension}`) as typeof celPolicy).exportPolicy(settings, options);
}
