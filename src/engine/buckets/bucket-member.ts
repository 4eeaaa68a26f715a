import { labelSelector, NAMESPACE_NAME_LABEL, Selector, SelectorError } from '../../resources/index.ts';
import type { LabelRequirement, MatchRule, MatchSelector, PolicyMatch } from '../../resources/index.ts';
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
  /** A label that the namespace must have; undefined when none need be there. */
  readonly namespacePin: LabelPin | undefined;
  /** A label that one of the objects must have; undefined when none need be there. */
  readonly objectPin: LabelPin | undefined;
  /** Whether the bucket is not the policy's own: in doubt, it is for a review. */
  readonly isVisitor: boolean;
}

/** A label that must be there, with one of these values. */
export interface LabelPin {
  readonly key: string;
  readonly values: readonly string[];
}

/** Served by two groups, of which one is converted to the other. */
const EVENTS = 'events';
const EVENT_GROUPS: readonly string[] = ['', 'events.k8s.io'];

/** `isVisitor`: the bucket is that of another revision of the policy. What it is sent may be in a version that no rule names. */
export function bucketMember(policy: LoadedPolicy, match: PolicyMatch, isVisitor: boolean): BucketMember {
  const namespaceSelector = readSelector(match.namespaceSelector);
  const objectSelector = readSelector(match.objectSelector);
  const namespacePins = pinsOf(namespaceSelector);
  return {
    policy,
    match,
    rules: isVisitor ? match.rules.flatMap(inAnyVersion) : match.rules,
    namespaceSelector,
    objectSelector,
    selectsByName: requirementsOf(namespaceSelector).every(({ key }) => key === NAMESPACE_NAME_LABEL),
    namespacePin: namespacePins.find(({ key }) => key === NAMESPACE_NAME_LABEL) ?? namespacePins[0],
    objectPin: pinsOf(objectSelector)[0],
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

function requirementsOf(selector: Selector | SelectorError): readonly LabelRequirement[] {
  return selector instanceof Selector ? selector.requirements : [];
}

function pinsOf(selector: Selector | SelectorError): readonly LabelPin[] {
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
