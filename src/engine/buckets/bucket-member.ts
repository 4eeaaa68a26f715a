import { labelSelector, NAMESPACE_NAME_LABEL, Selector, SelectorError } from '../../resources/index.ts';
import type { LabelRequirement, MatchRule, MatchSelector, PolicyMatch } from '../../resources/index.ts';
import type { LoadedPolicy } from '../loaded-policy.ts';

/** The rules and selectors of a policy, prepared for matching. */
export interface PolicyMatcher {
  readonly match: PolicyMatch;
  readonly rules: readonly MatchRule[];
  /** An error when the policy's selector is invalid. */
  readonly namespaceSelector: Selector | SelectorError;
  readonly objectSelector: Selector | SelectorError;
  /** Whether the namespace selector reads only the namespace's name: its labels need no lookup. */
  readonly selectsByName: boolean;
  /**
   * Whether the review may come from the webhook of another revision of the policy. Then rules match any version, and a
   * policy with conditions that fail matches.
   */
  readonly mayBeOtherRevision: boolean;
}

/** A policy of a bucket. */
export interface BucketMember extends PolicyMatcher {
  readonly policy: LoadedPolicy;
  /** A label that the selector requires of the namespace, if any. */
  readonly requiredNamespaceLabel: RequiredLabel | undefined;
  /** A label that the selector requires of one of the objects, if any. */
  readonly requiredObjectLabel: RequiredLabel | undefined;
}

/** A label that a selector requires, with its accepted values. */
interface RequiredLabel {
  readonly key: string;
  readonly values: readonly string[];
}

/** Kubernetes serves events in two groups, and converts between them. */
const EVENTS = 'events';
const EVENT_GROUPS: readonly string[] = ['', 'events.k8s.io'];

/** For `mayBeOtherRevision`, see {@link PolicyMatcher.mayBeOtherRevision}. */
export function policyMatcher(match: PolicyMatch, mayBeOtherRevision: boolean): PolicyMatcher {
  const namespaceSelector = readSelector(match.namespaceSelector);
  return {
    match,
    rules: mayBeOtherRevision ? match.rules.flatMap(inAnyVersion) : match.rules,
    namespaceSelector,
    objectSelector: readSelector(match.objectSelector),
    selectsByName: requirementsOf(namespaceSelector).every(({ key }) => key === NAMESPACE_NAME_LABEL),
    mayBeOtherRevision,
  };
}

export function bucketMember(policy: LoadedPolicy, match: PolicyMatch, mayBeOtherRevision: boolean): BucketMember {
  const matcher = policyMatcher(match, mayBeOtherRevision);
  const namespaceLabels = requiredLabelsOf(matcher.namespaceSelector);
  return {
    ...matcher,
    policy,
    requiredNamespaceLabel: namespaceLabels.find(({ key }) => key === NAMESPACE_NAME_LABEL) ?? namespaceLabels[0],
    requiredObjectLabel: requiredLabelsOf(matcher.objectSelector)[0],
  };
}

/**
 * The rule for every version and group that an API server may convert to: another revision's webhook may name others.
 */
function inAnyVersion(rule: MatchRule): readonly MatchRule[] {
  const any = { ...rule, apiVersions: ['*'] };
  const isOfEvents = EVENT_GROUPS.some((group) => rule.apiGroups.includes(group));
  const named = rule.resources.includes('*/*') || rule.resources.includes('*') ? [EVENTS] : rule.resources;
  const events = named.filter((resource) => resource === EVENTS || resource === `${EVENTS}/*`);
  return isOfEvents && events.length > 0 ? [any, { ...any, apiGroups: EVENT_GROUPS, resources: events }] : [any];
}

function requirementsOf(selector: Selector | SelectorError): readonly LabelRequirement[] {
  return selector instanceof Selector ? selector.requirements : [];
}

function requiredLabelsOf(selector: Selector | SelectorError): readonly RequiredLabel[] {
  return requirementsOf(selector).filter(({ operator }) => operator === '=' || operator === 'in');
}

function readSelector(selector: MatchSelector): Selector | SelectorError {
  if (Object.keys(selector).length === 0) {
    return Selector.EVERYTHING;
  }
  try {
    return labelSelector(selector);
  } catch (error) {
    if (error instanceof SelectorError) {
      return error;
    }
    throw error;
  }
}
