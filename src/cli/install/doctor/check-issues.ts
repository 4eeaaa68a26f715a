// Reports why policies do less than they say, although they serve: the issues in their statuses.
import { type AdmissionPolicyObject, ISSUE_REASONS, type PolicyIssue } from '../../../resources/index.ts';
import { type Finding, finding } from './finding.ts';

const CORRECT = 'Correct the policy and apply it again.';
/** What to do, where it is not to correct the policy. */
const ACTIONS: ReadonlyMap<string, string> = new Map([
  [ISSUE_REASONS.mayReject, 'Grant it, unless the policy works without it.'],
  [ISSUE_REASONS.notServed, 'Install the definition of the kind, or correct the rule.'],
  [ISSUE_REASONS.invalidParameters, 'Correct the parameters: requests of these namespaces are refused.'],
  [ISSUE_REASONS.invalidAnnotation, 'Correct the annotation, which is ignored, or remove it.'],
]);

export function checkIssues({ status }: AdmissionPolicyObject, where: string): readonly Finding[] {
  return (status?.issues ?? []).map((issue) => issueFinding(issue, where));
}

function issueFinding({ reason, severity, field, message }: PolicyIssue, where: string): Finding {
  const code =
    severity === 'Error' ? 'PolicyCannotWork' : reason === ISSUE_REASONS.mayReject ? 'PolicyMayReject' : 'PolicyIssue';
  // Many policies may have rules for a kind that is not installed: one cause, at different fields.
  const text = field === undefined || reason === ISSUE_REASONS.notServed ? message : `${field}: ${message}`;
  return finding(code, where, `${reason}: ${text}`, ACTIONS.get(reason) ?? CORRECT);
}
