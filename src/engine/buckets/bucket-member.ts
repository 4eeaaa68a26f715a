import { labelSelector, NAMESPACE_NAME_LABEL, Selector, SelectorError } from '../../resources/index.ts';
import type { MatchRule, MatchSelector, PolicyMatch } from '../../resources/index.ts';
import type { LoadedPolicy } from '../loaded-policy.ts';

/** A policy that answers in a bucket, with what it takes to tell which reviews it is for. */
export interface BucketMember {
  readonly policy: LoadedPolicy;
  readonly match: PolicyMatch;
  readonly rules: readonly MatchRule[];
  /** An error where the policy has something that is no selector. */
  readonly namespaceSelector: Selector | SelectorError;
  readonly objectSelector: Selector | SelectorError;
  /** Whether the selector of namespaces looks at their names only: those need not be looked up. */
  readonly selectsByName: boolean;
  /** A label that a namespace must have, with one of these values; undefined when none need be there. */
  readonly pin: { readonly key: string; readonly values: readonly string[] } | undefined;
  /** Whether the bucket is not the policy's own: in doubt, it is for a review. */
  readonly isVisitor: boolean;
}

/** Served by two groups, of which one is converted to the other. */
const EVENTS = 'events';
const EVENT_GROUPS: readonly string[] = ['', 'events.k8s.io'];

/** `isVisitor`: the bucket is that of another revision of the policy. What it is sent may be in a version that no rule names. */
export function bucketMember(policy: LoadedPolicy, match: PolicyMatch, isVisitor: boolean): BucketMember {
  const namespaceSelector = readSelector(match.namespaceSelector);
  const requirements = namespaceSelector instanceof Selector ? namespaceSelector.requirements : [];
  const wanted = requirements.filter(({ operator }) => operator === '=' || operator === 'in');
  const pin = wanted.find(({ key }) => key === NAMESPACE_NAME_LABEL) ?? wanted[0];
  return {
    policy,
    match,
    rules: isVisitor ? match.rules.flatMap(inAnyVersion) : match.rules,
    namespaceSelector,
    objectSelector: readSelector(match.objectSelector),
    selectsByName: requirements.every(({ key }) => key === NAMESPACE_NAME_LABEL),
    pin,
    isVisitor,
  };
}

/** A rule for whatever an API server may convert to for it: another revision's webhook may name other versions, and groups. */
function inAnyVersion(rule: MatchRule): readonly MatchRule[] {
  const any = { ...rule, apiVersions: ['*'] };
  const isOfEvents = EVENT_GROUPS.some((group) => rule.apiGroups.includes(group));
  const named = rule.resources.includes('*/*') || rule.resources.includes('*') ? [EVENTS] : rule.resources;
  const events = named.filter((resource) => resource === EVENTS || resource === `${EVENTS}/*`);
  return isOfEvents && events.length > 0 ? [any, { ...any, apiGroups: EVENT_GROUPS, resources: events }] : [any];
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
