// Names and texts of issues in the status of policies.
import type { PolicyIssue } from '../kind-declarations/common-schemas.ts';

/** Reasons of issues. Documented in docs/lifecycle.md. */
export const ISSUE_REASONS = {
  /** A rule names what Kubernetes does not have, so it matches no request, whatever is installed later. */
  cannotMatch: 'CannotMatch',
  /** An expression reads a field that the kinds of Kubernetes which the rules match do not have, and always fails. */
  cannotSucceed: 'CannotSucceed',
  /** The cluster does not serve what a rule matches: its definition may be installed later. */
  notServed: 'NotServed',
  /** An expression does not fit the schema of a kind. */
  typeWarnings: 'TypeWarnings',
  /** Requests of namespaces are refused, because their parameters are invalid. */
  invalidParameters: 'InvalidParameters',
  /** A module needs what the policy does not grant. */
  mayReject: 'MayReject',
  /** An annotation of the policy is ignored. */
  invalidAnnotation: 'InvalidAnnotation',
} as const;

/** Reason of the condition Ready while the rules and expressions of a new spec are compared with the kinds of the cluster. */
export const CHECKING = 'Checking';

/** An issue in one line. */
export function issueText({ field, message }: PolicyIssue): string {
  return field === undefined ? message : `${field}: ${message}`;
}
