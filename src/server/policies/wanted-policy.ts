// What a source of policies wants the registry to serve.
import type { FailurePolicy } from '../../engine/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { PinnedModule } from '../../control/index.ts';

/** A version of a policy to load: a PolicyRevision, or an entry of a policies file. */
export interface WantedRevision {
  /** `metadata.name` of the PolicyRevision; the policy's id for a policies file. */
  readonly name: string;
  /** `metadata.uid` of the PolicyRevision; the hash of the entry for a policies file. */
  readonly uid: string;
  /** Number of the PolicyRevision; absent for a policies file. */
  readonly revision?: number;
  /** The policy from its source, for {@link LoadCollaborators.read}. */
  readonly snapshot: unknown;
  /** `status.order`; 0 when it is missing. */
  readonly order: number;
  /** False: while it cannot be loaded, the policy is not evaluated. Default: its failurePolicy answers. */
  readonly isEnforced?: boolean;
  /** Its modules when it was validated. Absent for a policies file, which uses the current modules of the sources. */
  readonly modules?: readonly PinnedModule[];
  /** The requests that it matches; absent for a policies file, and when the rules are invalid. */
  readonly match?: PolicyMatch;
}

/** Why no version of a policy serves, and the answer to requests meanwhile. */
export interface FailedRevision {
  /** `metadata.name` and `metadata.uid` of the PolicyRevision. */
  readonly name: string;
  readonly uid: string;
  readonly revision: number;
  readonly message: string;
  readonly failurePolicy: FailurePolicy;
  /** The requests that it matches; absent when it is not enforced, and when the rules are invalid. */
  readonly match?: PolicyMatch;
}

/** A revision that failed for parameters, and is tried again when these change. */
export interface WaitingRevision {
  readonly name: string;
  readonly uid: string;
  readonly revision: number;
  /** The policy, with its parameters alone. */
  readonly snapshot: unknown;
  /** The fingerprint of the parameters for which it failed, if known. */
  readonly tried?: string;
}

/** The wanted versions of one policy. */
export interface WantedPolicy {
  readonly serving?: WantedRevision;
  /** Versions to load beside the serving one, by number. */
  readonly staged: readonly WantedRevision[];
  /** Set when nothing can serve because the newest revision failed. */
  readonly failed?: FailedRevision;
  /** `metadata.uid` of the policy, of which exceptions are accepted; absent while revisions of another one are there. */
  readonly policyUid?: string;
  /** The newest revision, when it failed for parameters. */
  readonly waiting?: WaitingRevision;
  /**
   * The buckets of all revisions that serve or may serve soon, when they differ: during a rollout, API servers may use
   * any of them.
   */
  readonly buckets?: readonly string[];
}

/** Wanted versions by policy id; undefined when the policy was removed. */
export type WantedChanges = ReadonlyMap<string, WantedPolicy | undefined>;

/** The failurePolicy of a policy's unvalidated spec: `Ignore` in monitor mode, `Fail` when it is missing or invalid. */
export function failurePolicyOf(snapshot: unknown): FailurePolicy {
  const has = (field: string, value: string): boolean =>
    typeof snapshot === 'object' &&
    snapshot !== null &&
    Object.hasOwn(snapshot, field) &&
    (snapshot as Readonly<Record<string, unknown>>)[field] === value;
  return has('failurePolicy', 'Ignore') || has('mode', 'monitor') ? 'Ignore' : 'Fail';
}
