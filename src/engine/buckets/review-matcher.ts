import {
  GUARDED_GROUPS,
  isInNamespace,
  NAMESPACE_NAME_LABEL,
  POLICIES_GROUP,
  PORTCULLIS_GROUP,
  ruleMatches,
  unmetConstraint,
  usesAuthorizer,
} from '../../resources/index.ts';
import { conditionsProblem, MatchConditionEvaluator } from '../../resources/match-conditions/index.ts';
import type { MatchRule, MatchSelector, PolicyMatch } from '../../resources/index.ts';
import type { Review, ReviewTarget } from '../review/admission-review.ts';
import { UnknownObject } from '../review/object-lookup.ts';
import { type PodTemplate, podTemplateOf } from '../pod-templates/pod-template.ts';
import type { ObjectLookup } from '../review/object-lookup.ts';
import { policyMatcher } from './bucket-member.ts';
import type { PolicyMatcher } from './bucket-member.ts';
import { checkConditions, selectReview } from './member-match.ts';
import type { Exclusion } from './member-match.ts';
import { ReviewSubject } from './review-subject.ts';

/** What excludes a review from a policy: a field of its spec, or its namespace. */
export type ReviewExclusion =
  | Exclusion
  | 'matchConditions'
  /** The policy is for another namespace. */
  | 'namespace'
  /** The rules name the resource in other versions only. API servers convert requests to those. */
  | 'version';

/** Whether API servers send a review to the webhook of a policy. */
export type ReviewMatch =
  | {
      readonly isMatch: true;
      /** What only the cluster could check, and is taken to match. */
      readonly unchecked: readonly ('namespaceSelector' | 'authorizer')[];
      /** The pod template that matches, in the place of its workload. */
      readonly template?: PodTemplate;
    }
  | {
      readonly isMatch: false;
      readonly excludedBy: ReviewExclusion;
      /** Of rules: the part that is for other requests. Of matchConditions: the name of the one that is false. */
      readonly detail?: string;
    }
  /** The match fails with an error, which API servers answer by the policy's failurePolicy. */
  | { readonly error: string };

/** Matches reviews with one policy, for commands without a cluster. */
export class ReviewMatcher {
  readonly #matcher: PolicyMatcher;
  readonly #inAnyVersion: PolicyMatcher;
  /** With the part of the namespace selector that needs no labels of the namespace. */
  readonly #byName: PolicyMatcher;
  readonly #conditions = new MatchConditionEvaluator(conditionsProblem);
  readonly #usesAuthorizer: boolean;

  constructor(policy: PolicyMatch) {
    const matchConditions = policy.matchConditions.filter(({ expression }) => !usesAuthorizer(expression));
    const match = { ...policy, matchConditions };
    this.#matcher = policyMatcher(match, false);
    this.#inAnyVersion = policyMatcher(match, true);
    this.#byName = policyMatcher({ ...match, namespaceSelector: onlyName(match.namespaceSelector) }, false);
    this.#usesAuthorizer = matchConditions.length < policy.matchConditions.length;
  }

  /**
   * A workload that the rules do not match may match by its pod template.
   * @param objects namespaces that are not known are taken to match. Other objects are not looked up
   */
  match(review: Review, objects: ObjectLookup): ReviewMatch {
    const match = this.#matchOf(review, objects);
    const template = 'isMatch' in match && !match.isMatch ? this.#templateOf(review) : undefined;
    if (template === undefined) {
      return match;
    }
    const ofPod = this.#matchOf(template.pod, objects);
    return 'isMatch' in ofPod && ofPod.isMatch ? { ...ofPod, template } : ofPod;
  }

  /** The template of a workload, if the policy checks it. */
  #templateOf(review: Review): PodTemplate | undefined {
    const { target } = review;
    const { podTemplates } = this.#matcher.match;
    return podTemplates === undefined || target === undefined ? undefined : podTemplateOf(review, target);
  }

  #matchOf(review: Review, objects: ObjectLookup): ReviewMatch {
    const { target } = review;
    if (target === undefined) {
      return { isMatch: false, excludedBy: 'rules' };
    }
    const subject = new ReviewSubject(review, target, objects);
    const { match } = this.#matcher;
    if (match.namespace !== undefined && !isOfNamespace(target, match.namespace)) {
      return { isMatch: false, excludedBy: 'namespace' };
    }
    if (match.namespace === undefined && isGuarded(target, match.rules)) {
      return { isMatch: false, excludedBy: 'exemption' };
    }
    const selected = this.#select(subject);
    if (typeof selected !== 'string') {
      return { error: selected.error };
    }
    if (selected !== 'matches' && selected !== 'unknown-namespace') {
      const unmet =
        selected === 'rules' ? unmetConstraint(match.rules, subject.ruleRequest, target.resource) : undefined;
      return { isMatch: false, excludedBy: selected, ...(unmet === undefined ? {} : { detail: unmet }) };
    }
    return this.#meetConditions(subject, selected === 'unknown-namespace');
  }

  #select(subject: ReviewSubject): ReturnType<typeof selectReview> | 'version' | 'unknown-namespace' {
    try {
      const selected = selectReview(this.#matcher, subject);
      return selected === 'rules' && this.#isConverted(subject) ? 'version' : selected;
    } catch (error) {
      if (!(error instanceof UnknownObject)) {
        throw error;
      }
      const selected = selectReview(this.#byName, subject);
      return selected === 'matches' ? 'unknown-namespace' : selected;
    }
  }

  #isConverted({ ruleRequest, target: { resource } }: ReviewSubject): boolean {
    const { match, rules } = this.#inAnyVersion;
    return match.matchPolicy === 'Equivalent' && rules.some((rule) => ruleMatches(rule, ruleRequest, resource));
  }

  #meetConditions(subject: ReviewSubject, isNamespaceUnknown: boolean): ReviewMatch {
    const met = checkConditions(this.#matcher, subject, this.#conditions);
    if ('error' in met) {
      return { error: `its match conditions cannot be evaluated: ${met.error}` };
    }
    return !met.matches
      ? {
          isMatch: false,
          excludedBy: 'matchConditions',
          ...(met.condition === undefined ? {} : { detail: met.condition }),
        }
      : {
          isMatch: true,
          unchecked: [
            ...(isNamespaceUnknown ? (['namespaceSelector'] as const) : []),
            ...(this.#usesAuthorizer ? (['authorizer'] as const) : []),
          ],
        };
  }
}

function onlyName({ matchLabels = {}, matchExpressions = [] }: MatchSelector): MatchSelector {
  const name = Object.entries(matchLabels).filter(([key]) => key === NAMESPACE_NAME_LABEL);
  return {
    matchLabels: Object.fromEntries(name),
    matchExpressions: matchExpressions.filter(({ key }) => key === NAMESPACE_NAME_LABEL),
  };
}

function isOfNamespace(target: ReviewTarget, namespace: string): boolean {
  return target.namespace === namespace && isInNamespace(target, target.resource);
}

/** Whether no policy of the cluster with these rules gets requests for the resource: see GUARDED_GROUPS. */
function isGuarded({ resource: { group }, subresource }: ReviewTarget, rules: readonly MatchRule[]): boolean {
  const isNamed = rules.some(({ apiGroups }) => apiGroups.includes(group));
  const isOwnRecord = group === PORTCULLIS_GROUP || (group === POLICIES_GROUP && subresource === 'status');
  return GUARDED_GROUPS.includes(group) && (!isNamed || isOwnRecord);
}
