// Reports why policies do less than they say, although they serve: the issues in their statuses.
import { type AdmissionPolicyObject, ISSUE_REASONS, type PolicyIssue } from '../../resources/index.ts';
import { toDoOf } from './to-do-of.ts';
import { type Finding, finding } from './finding.ts';

export function checkIssues({ status }: AdmissionPolicyObject, where: string): readonly Finding[] {
  return (status?.issues ?? []).map((issue) => issueFinding(issue, where));
}

function issueFinding({ reason, severity, field, message }: PolicyIssue, where: string): Finding {
  const code =
    severity === 'Error' ? 'PolicyCannotWork' : reason === ISSUE_REASONS.mayReject ? 'PolicyMayReject' : 'PolicyIssue';
  // Many policies may have rules for a kind that is not installed: one cause, at different fields.
  const text = field === undefined || reason === ISSUE_REASONS.notServed ? message : `${field}: ${message}`;
  return finding(code, where, `${reason}: ${text}`, toDoOf(reason, where));
}
