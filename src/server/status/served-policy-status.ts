import type { PolicyReason } from '../../evaluation/index.ts';

/** Phases of a policy, in their usual order. */
const POLICY_PHASES = ['Pending', 'Updating', 'Active', 'Degraded', 'Error'] as const;

/**
 * - Pending: declared; nothing serves, the first version is loading
 * - Updating: a version serves, a newer one is loading
 * - Active: the declared version serves
 * - Degraded: an older version serves, because the declared one failed
 * - Error: nothing can serve; requests are rejected, or admitted with a warning with failurePolicy Ignore
 */
export type ServedPolicyPhase = (typeof POLICY_PHASES)[number];

/** Identifies a version of a policy. */
export interface ServedPolicyVersion {
  /** Short name of the version: the start of the hash of definition and module digests; null until these are known. */
  readonly version: string | null;
  /** Number of the PolicyRevision, for policies of a cluster. */
  readonly revision?: number;
  /** Hash of the policy's settings. */
  readonly settingsHash: string;
  /** Module digests by module reference; references carry no credentials. */
  readonly modules: Readonly<Record<string, string>>;
}

/** The status of one policy in `GET /policies`. Times are ISO 8601. */
export interface ServedPolicyStatus {
  readonly id: string;
  readonly kind: 'policy' | 'group' | 'unknown';
  readonly mode: 'protect' | 'monitor' | 'unknown';
  readonly phase: ServedPolicyPhase;
  readonly reason: PolicyReason;
  readonly message: string;
  /** When the policy entered its phase and reason. */
  readonly since: string;
  /** The declared version; its digests are known once it was fetched. */
  readonly desired: ServedPolicyVersion | null;
  /** The serving version, and since when. */
  readonly serving: (ServedPolicyVersion & { readonly since: string }) | null;
  /** Number of attempts to load the declared version. */
  readonly attempts: number;
  /** Time of the next attempt. */
  readonly nextRetry: string | null;
}
