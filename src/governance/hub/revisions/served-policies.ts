// Which spec of a Policy is applied: that of its serving revision, not what is declared.
import type { Policy } from '../../../resources/index.ts';

/** A Policy as it is applied. */
export interface ServedPolicy {
  /** The Policy with the spec that is applied. */
  readonly policy: Policy;
  /** The revision that has this spec; undefined where nobody keeps revisions. */
  readonly revision: number | undefined;
}

export interface ServedPolicies {
  /** Undefined while nothing is applied, because the first revision is on its way. */
  of(root: Policy): ServedPolicy | undefined;
}

/** What is declared is applied: nobody keeps revisions, as in a dry run. */
export const DECLARED_POLICIES: ServedPolicies = { of: (policy) => ({ policy, revision: undefined }) };
