import type { PolicyReason } from '../../evaluation/index.ts';

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
