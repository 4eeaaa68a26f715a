import { ruleMatches, SelectorError } from '../../resources/index.ts';
import type { Selector } from '../../resources/index.ts';
import type { MatchConditionEvaluator, MatchResult } from '../../resources/match-conditions/index.ts';
import type { PolicyMatcher } from './bucket-member.ts';
import { UnknownObject } from '../review/object-lookup.ts';
import { NamespaceUnreadable } from './review-subject.ts';
import type { ReviewSubject } from './review-subject.ts';

/**
 * Whether a policy matches a review, or why that cannot be determined; `code` is the status code that an API server
 * answers then.
 */
export type MemberMatch = 'matches' | 'no-match' | { readonly error: string; readonly code: number };

/** What excludes a review from a policy. */
export type Exclusion = 'exemption' | 'rules' | 'namespaceSelector' | 'objectSelector';

const FORBIDDEN = 403;
const INTERNAL_ERROR = 500;

/**
 * Whether an API server would send the review to a webhook with this policy's settings, match conditions aside: see
 * {@link meetsConditions}. The review is in the version that the API server would send. An error (namespace labels that
 * cannot be read, an invalid selector) counts only when nothing else excludes the review, as in `k8s.io/apiserver`
 * (generic webhooks).
 * @throws UnknownObject when the result depends on an object that is not known yet.
 */
export function matchMember(member: PolicyMatcher, subject: ReviewSubject): MemberMatch {
  const match = selectReview(member, subject);
  return typeof match === 'string' && match !== 'matches' ? 'no-match' : match;
}

/** As {@link matchMember}, with what excludes the review. */
export function selectReview(
  member: PolicyMatcher,
  subject: ReviewSubject,
): Exclude<MemberMatch, 'no-match'> | Exclusion {
  const { rules, match } = member;
  const { ruleRequest, target } = subject;
  if (match.namespace !== undefined && subject.isExemptFromNamespaced) {
    return 'exemption';
  }
  if (!rules.some((rule) => ruleMatches(rule, ruleRequest, target.resource))) {
    return 'rules';
  }
  const byNamespace = attempt(() => selectsNamespace(member, subject));
  if (byNamespace === false) {
    return 'namespaceSelector';
  }
  const byObject = attempt(() => selectsObject(member.objectSelector, subject));
  if (byObject === false) {
    return 'objectSelector';
  }
  const problem = [byNamespace, byObject].find((result) => result !== true);
  if (problem instanceof UnknownObject) {
    throw problem;
  }
  return problem === undefined ? 'matches' : { error: problem.message, code: INTERNAL_ERROR };
}

function selectsNamespace({ namespaceSelector, selectsByName }: PolicyMatcher, subject: ReviewSubject): boolean {
  const selector = checked(namespaceSelector);
  return !subject.isInSelectedNamespace || selector.isEmpty || selector.matches(subject.namespaceLabels(selectsByName));
}

function selectsObject(objectSelector: Selector | SelectorError, subject: ReviewSubject): boolean {
  const selector = checked(objectSelector);
  return selector.isEmpty || subject.objectLabels().some((labels) => selector.matches(labels));
}

/** Whether the review meets the match conditions of a policy whose rules and selectors match. */
export function meetsConditions(
  member: PolicyMatcher,
  subject: ReviewSubject,
  conditions: MatchConditionEvaluator,
): MemberMatch {
  const result = checkConditions(member, subject, conditions);
  if ('error' in result) {
    const error = `its match conditions cannot be evaluated: ${result.error}`;
    return member.mayBeOtherRevision ? 'matches' : { error, code: FORBIDDEN };
  }
  return result.matches ? 'matches' : 'no-match';
}

/** As {@link meetsConditions}, with the name of the condition that is false. */
export function checkConditions(
  member: PolicyMatcher,
  subject: ReviewSubject,
  conditions: MatchConditionEvaluator,
): MatchResult {
  const { matchConditions, failurePolicy } = member.match;
  if (matchConditions.length === 0) {
    return { matches: true };
  }
  const ignoresFailures = failurePolicy === 'Ignore' && !member.mayBeOtherRevision;
  return conditions.check(matchConditions, ignoresFailures, subject.bindings());
}

function checked(selector: Selector | SelectorError): Selector {
  if (selector instanceof SelectorError) {
    throw selector;
  }
  return selector;
}

/** Whether the selector matches, or why that cannot be determined. */
function attempt(run: () => boolean): boolean | UnknownObject | NamespaceUnreadable | SelectorError {
  try {
    return run();
  } catch (error) {
    if (error instanceof UnknownObject || error instanceof NamespaceUnreadable || error instanceof SelectorError) {
      return error;
    }
    throw error;
  }
}
