// What a source of policies asks the registry to serve.
import type { FailurePolicy } from '../../engine/index.ts';
import type { PolicyMatch } from '../../resources/index.ts';
import type { PinnedModule } from '../../control/index.ts';

/** A version of a policy that is to be loaded: a PolicyRevision, or an entry of a policies file. */
export interface WantedRevision {
  /** `metadata.name` of the PolicyRevision; the policy's id for a file. */
  readonly name: string;
  /** `metadata.uid` of the PolicyRevision; the hash of the entry for a file. */
  readonly uid: string;
  /** Number of the PolicyRevision; absent for a file. */
  readonly revision?: number;
  /** The policy as its source has it, for {@link LoadCollaborators.read}. */
  readonly snapshot: unknown;
  /** `status.order`; 0 when it has none. */
  readonly order: number;
  /** Its modules as they were when it was validated. Absent for a file: the modules that the sources have now. */
  readonly modules?: readonly PinnedModule[];
  /** Which requests it is for; absent for a file, and when that cannot be understood. */
  readonly match?: PolicyMatch;
}

/** Why no version of a policy is to serve, and what requests are answered meanwhile. */
export interface FailedRevision {
  readonly revision: number;
  readonly message: string;
  readonly failurePolicy: FailurePolicy;
  /** Which requests it is for; absent when that cannot be understood. */
  readonly match?: PolicyMatch;
}

/** What is wanted of one policy. */
export interface WantedPolicy {
  readonly serving?: WantedRevision;
  /** To be loaded beside, by number. */
  readonly staged: readonly WantedRevision[];
  /** Set when nothing is to serve, now or soon, because the newest revision failed. */
  readonly failed?: FailedRevision;
  /**
   * The buckets of all revisions that serve or may soon, where they differ: until every replica has the same revision, an API
   * server may ask in any of them.
   */
  readonly buckets?: readonly string[];
}

/** What is wanted of policies by id; undefined: the policy is gone. */
export type WantedChanges = ReadonlyMap<string, WantedPolicy | undefined>;

/** What a policy's spec says about requests that it cannot judge; `Fail` where it cannot be read. */
export function failurePolicyOf(snapshot: unknown): FailurePolicy {
  const isIgnoring =
    typeof snapshot === 'object' &&
    snapshot !== null &&
    Object.hasOwn(snapshot, 'failurePolicy') &&
    (snapshot as { readonly failurePolicy: unknown }).failurePolicy === 'Ignore';
  return isIgnoring ? 'Ignore' : 'Fail';
}
