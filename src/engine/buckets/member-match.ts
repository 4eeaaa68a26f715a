import { ruleMatches, SelectorError } from '../../resources/index.ts';
import type { MatchConditions, Selector } from '../../resources/index.ts';
import type { BucketMember } from './bucket-member.ts';
import { NamespaceUnknown } from './namespace-lookup.ts';
import type { ReviewSubject } from './review-subject.ts';

/** Whether a policy is for a review, or why that cannot be known; `code` is that of the API server's refusal. */
export type MemberMatch = 'matches' | 'other' | { readonly error: string; readonly code: number };

const FORBIDDEN = 403;
const INTERNAL_ERROR = 500;

/**
 * Whether an API server would ask a webhook with this policy's settings about a review, which is in the version that it would
 * be sent in, as far as its match conditions do not leave it out: see {@link meetsConditions}. What cannot be known (labels of
 * a namespace, a condition that fails) matters only when nothing else leaves the review out (`k8s.io/apiserver`, generic
 * webhooks).
 */
export function matchMember(member: BucketMember, subject: ReviewSubject): MemberMatch {
  const { rules } = member;
  const { asked, target } = subject;
  if (!rules.some((rule) => ruleMatches(rule, asked, target.resource))) {
    return 'other';
  }
  const byNamespace = attempt(() => selectsNamespace(member, subject));
  if (byNamespace === false) {
    return 'other';
  }
  const byObject = attempt(() => selectsObject(member.objectSelector, subject));
  if (byObject === false) {
    return 'other';
  }
  const problem = [byNamespace, byObject].find((result) => typeof result === 'string');
  return problem === undefined ? 'matches' : { error: problem, code: INTERNAL_ERROR };
}

function selectsNamespace({ namespaceSelector, selectsByName }: BucketMember, subject: ReviewSubject): boolean {
  const selector = checked(namespaceSelector);
  return !subject.isInSelectedNamespace || selector.isEmpty || selector.matches(subject.namespaceLabels(selectsByName));
}

function selectsObject(objectSelector: Selector | SelectorError, subject: ReviewSubject): boolean {
  const selector = checked(objectSelector);
  return selector.isEmpty || subject.objectLabels().some((labels) => selector.matches(labels));
}

/** Whether a review that a policy is for otherwise meets its match conditions, too. */
export function meetsConditions(
  member: BucketMember,
  subject: ReviewSubject,
  conditions: MatchConditions,
): MemberMatch {
  const { matchConditions, failurePolicy } = member.match;
  const result = conditions.check(matchConditions, failurePolicy === 'Ignore' && !member.isVisitor, subject.bindings());
  if ('error' in result) {
    const error = `its match conditions cannot be evaluated: ${result.error}`;
    return member.isVisitor ? 'matches' : { error, code: FORBIDDEN };
  }
  return result.matches ? 'matches' : 'other';
}

function checked(selector: Selector | SelectorError): Selector {
  if (selector instanceof SelectorError) {
    throw selector;
  }
  return selector;
}

/** The result, or what is the matter. */
function attempt(run: () => boolean): boolean | string {
  try {
    return run();
  } catch (error) {
    if (error instanceof NamespaceUnknown || error instanceof SelectorError) {
      return error.message;
    }
    throw error;
  }
}
