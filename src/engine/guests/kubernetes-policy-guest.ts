import { createRequire } from 'node:module';
import type * as celPolicy from '../cel-policy/index.ts';
import type { PolicyManifestOptions, ManifestProblem, ManifestVerdict } from '../cel-policy/index.ts';
import type * as manifestsGuest from './manifests-guest.ts';
import type { PolicyGuest } from './policy-guest.ts';

const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const require = createRequire(import.meta.url);

/** A guest that gives the verdicts of an API server with these manifests. */
export interface KubernetesPolicyGuest extends PolicyGuest {
  /** Policies and bindings without effect, and the reasons. */
  readonly notes: readonly string[];
  /**
   * Why no policy with a binding applies to the request of a review. Undefined if one does; a match that fails counts.
   * @param requestJson an AdmissionRequest, in UTF-8
   */
  unmatchedBecause(requestJson: Buffer): string | undefined;
  /**
   * The answer of an API server.
   * @param requestJson an AdmissionRequest, in UTF-8
   */
  answer(requestJson: Buffer): ManifestVerdict;
}

/**
 * A guest for ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings. Namespaces and parameters
 * are looked up among the manifests. Its code is loaded on first use. Throws EngineError `guest-error` with all mistakes in
 * the manifests.
 */
export function createManifestsGuest(
  documents: readonly unknown[],
  options: PolicyManifestOptions = {},
): KubernetesPolicyGuest {
  const { ManifestsGuest } = require(`./manifests-guest.${extension}`) as typeof manifestsGuest;
  return new ManifestsGuest(documents, options);
}

/** All mistakes in manifests, for which {@link createManifestsGuest} throws. */
export function manifestProblems(
  documents: readonly unknown[],
  options: PolicyManifestOptions = {},
): readonly ManifestProblem[] {
  const { loadManifests } = require(`../cel-policy/index.${extension}`) as typeof celPolicy;
  return loadManifests(documents, options).problems;
}
