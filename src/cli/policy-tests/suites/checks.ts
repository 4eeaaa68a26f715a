// Results in the terms of CI systems, whose formats share them.
import type { Problem, ProblemPlace, ProblemRule } from '../../problems/problem.ts';

/** The result of one policy on one request. */
export interface PolicyCheck {
  readonly name: string;
  readonly status:
    | 'passed'
    /** Not as it should be, and no failure: of a policy in monitor mode. */
    | 'warned'
    | 'failed'
    /** There is no verdict. */
    | 'error'
    /** The policy does not apply. */
    | 'skipped';
  /** What was checked: `Deployment shop/web`, `suite › case`. */
  readonly subject: string;
  /** Id of the rule that is broken. */
  readonly rule: string;
  /** Why it has not passed, in one line; empty if it has. */
  readonly message: string;
  /** The same, in several lines. */
  readonly details: string;
  /** Warnings, and log lines of the policy. */
  readonly output: readonly string[];
  readonly place?: ProblemPlace;
  readonly durationMs: number;
}

/** The checks of one file. */
export interface CheckGroup {
  readonly name: string;
  /** Undefined for standard input. */
  readonly file?: string;
  readonly checks: readonly PolicyCheck[];
  /** About the policy. */
  readonly warnings?: readonly string[];
  readonly durationMs: number;
}

/** What the formats of CI systems show. */
export interface CheckReport {
  readonly groups: readonly CheckGroup[];
  /** About policies, whatever their results are. */
  readonly warnings: readonly Problem[];
  /** All rules that could be broken. */
  readonly rules: readonly ProblemRule[];
}
