// Why a policy does less than it says, although a revision of it serves: `status.issues`. All parts of the product that tell users
// about it read this list.
import { type RefusedReport, refusedText } from '../../control/index.ts';
import {
  CHECKING,
  ISSUE_REASONS,
  issueText,
  MAX_ISSUE_LENGTH,
  MAX_ISSUES,
  type PolicyIssue,
  type AdmissionPolicyStatus,
  type Readiness,
} from '../../resources/index.ts';
import { shortened } from '../../values/index.ts';
import { isTypeChecked } from '../type-checks/type-check-conditions.ts';
import type { TypeCheckReport, TypeProblem } from '../type-checks/type-check-report.ts';
import { REASONS } from '../../rollout/index.ts';
import type { AdmissionRevision, AdmissionRolloutView } from './admission-rollout-view.ts';
import type { RolloutPhase } from './rollout-phase.ts';

/** Issues that a message names; further ones are counted. */
const MAX_NAMED = 3;

const FROM_TYPE_CHECKS: ReadonlySet<string> = new Set([
  ISSUE_REASONS.cannotMatch,
  ISSUE_REASONS.cannotSucceed,
  ISSUE_REASONS.notServed,
  ISSUE_REASONS.typeWarnings,
]);

/**
 * All issues of a policy, those first for which it is not ready.
 * @param revision that serves, or should
 * @param refused what replicas refuse for parameters
 */
export function policyIssues(
  view: AdmissionRolloutView,
  revision: AdmissionRevision | undefined,
  refused: RefusedReport | undefined,
  before: AdmissionPolicyStatus | undefined,
): readonly PolicyIssue[] {
  const { invalidParameters, mayReject, invalidAnnotation } = ISSUE_REASONS;
  const issues = [
    ...typeIssues(view, before),
    ...(refused === undefined ? [] : [warning(invalidParameters, refusedText(refused))]),
    ...(revision?.warnings ?? []).map((text) => warning(mayReject, `it may reject requests: ${text}`)),
    ...view.invalidAnnotations.map(({ annotation, message }) =>
      warning(invalidAnnotation, message, `metadata.annotations[${annotation}]`),
    ),
  ];
  const rank = ({ severity }: PolicyIssue): number => (severity === 'Error' ? 0 : 1);
  return issues.toSorted((one, other) => rank(one) - rank(other)).slice(0, MAX_ISSUES);
}

/** Until there is a report on this generation, what was known of it before stays. */
function typeIssues(
  { typeCheck, generation }: AdmissionRolloutView,
  before: AdmissionPolicyStatus | undefined,
): readonly PolicyIssue[] {
  if (typeCheck === undefined || typeCheck.skipped !== undefined) {
    const known = before?.observedGeneration === generation ? (before.issues ?? []) : [];
    return known.filter(({ reason }) => FROM_TYPE_CHECKS.has(reason));
  }
  return issuesOfReport(typeCheck);
}

function issuesOfReport({ unserved, warnings }: TypeCheckReport): readonly PolicyIssue[] {
  const { cannotMatch, notServed, cannotSucceed, typeWarnings } = ISSUE_REASONS;
  return [
    ...unserved.map((one) => issueOf(one, cannotMatch, notServed)),
    ...warnings.map((one) =>
      issueOf(
        one.isCertain === true ? { ...one, message: `${one.message}: it succeeds for no object` } : one,
        cannotSucceed,
        typeWarnings,
      ),
    ),
  ];
}

function issueOf({ field, message, isCertain }: TypeProblem, certain: string, possible: string): PolicyIssue {
  return isCertain === true
    ? { ...warning(certain, message, field), severity: 'Error' }
    : warning(possible, message, field);
}

function warning(reason: string, message: string, field?: string): PolicyIssue {
  return {
    reason,
    severity: 'Warning',
    ...(field === undefined ? {} : { field: shortened(field, MAX_ISSUE_LENGTH) }),
    message: shortened(message, MAX_ISSUE_LENGTH),
  };
}

/**
 * The phase with what a reader must know besides it. A policy at rest with an issue of severity Error is stalled: it serves, and
 * does not do what it says.
 */
export function withIssues(current: RolloutPhase, issues: readonly PolicyIssue[]): RolloutPhase {
  const [first] = issues;
  if (first === undefined) {
    return current;
  }
  const isAtRest = current.state === 'ready';
  const isError = first.severity === 'Error';
  const named = issues.slice(0, MAX_NAMED).map(issueText);
  const more = issues.length > MAX_NAMED ? [`${issues.length - MAX_NAMED} more in status.issues`] : [];
  return {
    ...current,
    ...(isAtRest && (isError || current.reason === REASONS.serving) ? { reason: first.reason } : {}),
    ...(isAtRest && isError ? { state: 'stalled' } : {}),
    message: `${current.message}${isAtRest ? ', but' : ';'} ${[...named, ...more].join('; ')}`,
  };
}

/** The readiness of a phase: a new spec is not ready before it is compared with the kinds of the cluster. */
export function checkedReadiness(
  current: RolloutPhase,
  view: AdmissionRolloutView,
  before: AdmissionPolicyStatus | undefined,
): Readiness {
  return current.state === 'ready' && view.isTypeCheckPending && !isTypeChecked(before?.conditions, view.generation)
    ? {
        state: 'reconciling',
        reason: CHECKING,
        message: `${current.message}; its rules and expressions are being compared with the kinds of the cluster`,
      }
    : current;
}

/** Issues that deserve an event; annotations have events of their own. */
export function newIssues(
  before: AdmissionPolicyStatus | undefined,
  after: AdmissionPolicyStatus,
): readonly PolicyIssue[] {
  const known = before?.issues ?? [];
  const { invalidAnnotation, invalidParameters } = ISSUE_REASONS;
  return (after.issues ?? []).filter(
    (issue) =>
      issue.reason !== invalidAnnotation &&
      // The number of namespaces changes with each of them.
      !known.some(
        (one) =>
          one.reason === issue.reason && (issueText(one) === issueText(issue) || one.reason === invalidParameters),
      ),
  );
}
