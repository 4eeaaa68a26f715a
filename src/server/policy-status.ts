// What is told about a policy: the phases of DESIGN's policy change, and the reasons for them.

/** Where a policy is in its life, in the order in which it is usually passed through. */
export const POLICY_PHASES = ['Pending', 'Updating', 'Active', 'Degraded', 'Error'] as const;

/**
 * - Pending: declared, nothing serves yet, the first version is being loaded
 * - Updating: a version serves, a newer one is being loaded
 * - Active: the declared version serves
 * - Degraded: an older version serves, because the declared one failed
 * - Error: nothing can serve: requests are rejected, or admitted with a warning under failurePolicy Ignore
 */
export type PolicyPhase = (typeof POLICY_PHASES)[number];

/** Why a policy is in its phase. One word each, for programs; the message says the rest. */
export type PolicyReason =
  /** The declared version is being fetched, compiled and checked. */
  | 'Loading'
  /** The declared version serves. */
  | 'Serving'
  /** The declared version serves from the module cache, because its source could not be reached. */
  | 'ServingFromCache'
  /** The entry in the policies file is not valid. */
  | 'InvalidDefinition'
  /** The module's source could not be reached or answered with an error; it is tried again. */
  | 'FetchFailed'
  /** The module does not have the digest that the policy names. */
  | 'DigestMismatch'
  /** The module is not WebAssembly, or of a kind or version that is not supported. */
  | 'InvalidModule'
  /** The module was made for a newer Kubewarden than this server stands for (`minimumKubewardenVersion`). */
  | 'UnsupportedVersion'
  /** The policy refused its settings. */
  | 'InvalidSettings'
  /** The policy failed while its settings were checked. */
  | 'SettingsCheckFailed'
  /** The policies file cannot be used, so what served before the restart serves. */
  | 'PoliciesFileUnusable'
  /** A worker could not take the policy up. */
  | 'ActivationFailed'
  /** What served before the restart serves, because the revisions of the cluster are not known yet. */
  | 'ServingFromRecord'
  /** No revision of the policy serves in the cluster, and its newest one failed. */
  | 'RevisionFailed';

/** A version of a policy: what makes it differ from another one. */
export interface PolicyVersion {
  /** Short name of the version: the start of the hash over definition and module digests; null until these are known. */
  readonly version: string | null;
  /** Number of the PolicyRevision, where policies come from a cluster. */
  readonly revision?: number;
  /** Hash of the policy's settings. */
  readonly settingsHash: string;
  /** Module digests by module reference; references carry no credentials. */
  readonly modules: Readonly<Record<string, string>>;
}

/** Everything that `GET /policies` tells about one policy. Times are ISO 8601. */
export interface PolicyStatus {
  readonly id: string;
  readonly kind: 'policy' | 'group' | 'unknown';
  readonly mode: 'protect' | 'monitor' | 'unknown';
  readonly phase: PolicyPhase;
  readonly reason: PolicyReason;
  readonly message: string;
  /** Since when the policy is in its phase, for its reason. */
  readonly since: string;
  /** The declared version; its digests are known once it was fetched. */
  readonly desired: PolicyVersion | null;
  /** The version that answers, and since when. */
  readonly serving: (PolicyVersion & { readonly since: string }) | null;
  /** How often the declared version was tried. */
  readonly attempts: number;
  /** When it is tried again. */
  readonly nextRetry: string | null;
}
