import type { UnservedRule } from '../../resources/index.ts';

/** What is wrong with a rule or an expression, at its field. */
export interface TypeProblem extends UnservedRule {
  /** Whether it is wrong in every cluster of this version, whatever is installed later. */
  readonly isCertain?: true;
}

/** What is wrong with a policy for the kinds that the cluster serves. Plain data, to be sent between threads. */
export interface TypeCheckReport {
  /** Rules that match no resource. */
  readonly unserved: readonly TypeProblem[];
  readonly warnings: readonly TypeProblem[];
  /** Number of checked expressions. */
  readonly expressions: number;
  /** The kinds against which they were checked: `apps/v1 Deployment`. */
  readonly kinds: readonly string[];
  /** Why the policy was not checked. */
  readonly skipped?: string;
  /** Whether the cluster could not be read, so that the check should be repeated. */
  readonly isTransient?: true;
}

/** A report on a policy that was not checked. */
export function skippedReport(skipped: string): TypeCheckReport {
  return { unserved: [], warnings: [], expressions: 0, kinds: [], skipped };
}
