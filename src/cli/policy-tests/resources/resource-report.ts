// Results of policies on resources.
import type { JsonValue } from '../../../engine/index.ts';
import type { PolicyLogEntry } from '../../../engine/capabilities/index.ts';
import type { FilePolicy } from '../../policy/file-policy.ts';
import type { PolicyWarning } from '../../policy/policy-warning.ts';
import { EXIT } from '../../errors.ts';
import type { Resource } from './read-resources.ts';

/** In the words of the PolicyReport API: https://github.com/kubernetes-sigs/wg-policy-prototypes */
const OUTCOMES = ['pass', 'fail', 'warn', 'error', 'skip'] as const;
export type Outcome = (typeof OUTCOMES)[number];

/** The result of one policy on one resource. */
export interface PolicyResult {
  readonly policy: FilePolicy;
  /**
   * `fail`: denied. `warn`: allowed with warnings, or denied by a policy in monitor mode. `error`: there is no verdict.
   * `skip`: API servers do not ask the policy about the resource.
   */
  readonly outcome: Outcome;
  /** Why it is not `pass`. */
  readonly message?: string;
  readonly code?: number;
  readonly warnings: readonly string[];
  readonly auditAnnotations: Readonly<Record<string, string>>;
  /** Whether the policy changed the object. */
  readonly isMutated: boolean;
  readonly log: readonly PolicyLogEntry[];
  readonly durationMs: number;
}

export interface ResourceResult {
  readonly resource: Resource;
  /** `Deployment shop/web` */
  readonly text: string;
  readonly results: readonly PolicyResult[];
  /** The object of the request. */
  readonly before: JsonValue;
  /** The object after all mutating policies. */
  readonly after: JsonValue;
}

/** A policy that cannot be evaluated at all. */
export interface UnusablePolicy {
  readonly policy: FilePolicy;
  readonly message: string;
  /** Its module cannot be read, as opposed to one that does not start, or settings that are invalid. */
  readonly isUnreadable: boolean;
}

export interface ResourceReport {
  readonly policies: readonly FilePolicy[];
  readonly problems: readonly UnusablePolicy[];
  readonly resources: readonly ResourceResult[];
  /** About the rules of the policies, and the types of their expressions. */
  readonly warnings: readonly PolicyWarning[];
  /** For the user. */
  readonly notes: readonly string[];
  /** Whether it is a failure that no policy applies to any resource. Default: no. */
  readonly requiresMatch?: boolean;
  readonly durationMs: number;
}

export type OutcomeCounts = Readonly<Record<Outcome, number>>;

export function countOutcomes({ resources }: ResourceReport): OutcomeCounts {
  const counts = { pass: 0, fail: 0, warn: 0, error: 0, skip: 0 };
  for (const { outcome } of resources.flatMap(({ results }) => results)) {
    counts[outcome] += 1;
  }
  return counts;
}

/** Whether no policy applies to any resource. */
export function hasNoMatch({ problems, resources }: ResourceReport): boolean {
  const isSkipped = resources.every(({ results }) => results.every(({ outcome }) => outcome === 'skip'));
  return isSkipped && problems.length === 0;
}

/** A policy whose code cannot be read counts more than one that denies. */
export function exitCodeOf(report: ResourceReport): number {
  if (report.problems.some(({ isUnreadable }) => isUnreadable)) {
    return EXIT.usage;
  }
  const { fail, error } = countOutcomes(report);
  const isUnmatched = report.requiresMatch === true && hasNoMatch(report);
  return isUnmatched || fail + error + report.problems.length > 0 ? EXIT.failed : EXIT.ok;
}
