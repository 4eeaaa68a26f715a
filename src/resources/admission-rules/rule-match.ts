import type { GroupVersionResource } from '../resource-type.ts';
import type { MatchRule } from './match-rule.ts';

/** The fields of a request that rules match, besides the resource. */
export interface RuleRequest {
  readonly operation: string;
  /** Empty for the resource itself. */
  readonly subresource: string;
  /** Empty for cluster-scoped resources; requests for a Namespace contain its name. */
  readonly namespace: string;
}

/**
 * Whether a rule matches a request for `resource`, as API servers match rules of webhooks
 * (`admissionregistration.k8s.io/v1` RuleWithOperations).
 */
export function ruleMatches(rule: MatchRule, request: RuleRequest, resource: GroupVersionResource): boolean {
  return (
    scopeMatches(rule.scope, isInNamespace(request, resource)) &&
    hasOrAll(rule.operations, request.operation) &&
    hasOrAll(rule.apiGroups, resource.group) &&
    hasOrAll(rule.apiVersions, resource.version) &&
    rule.resources.some((one) => resourceMatches(one, resource.resource, request.subresource))
  );
}

/**
 * Whether a request is for a namespaced resource. Namespaces are cluster-scoped, although their requests contain a
 * namespace.
 */
export function isInNamespace({ namespace }: Pick<RuleRequest, 'namespace'>, resource: GroupVersionResource): boolean {
  return (
    namespace !== '' && !(resource.resource === 'namespaces' && resource.group === '' && resource.version === 'v1')
  );
}

function scopeMatches(scope: string, isNamespaced: boolean): boolean {
  switch (scope) {
    case '*':
      return true;
    case 'Cluster':
      return !isNamespaced;
    case 'Namespaced':
      return isNamespaced;
    default:
      return false;
  }
}

/** Whether a list of a rule has a value, or all by a star. */
export function hasOrAll(list: readonly string[], value: string): boolean {
  return list.includes('*') || list.includes(value);
}

function resourceMatches(rule: string, resource: string, subresource: string): boolean {
  const [ruled, ruledSub] = splitResource(rule);
  return (ruled === '*' || ruled === resource) && (ruledSub === '*' || ruledSub === subresource);
}

/** Resource and subresource of a rule's `pods/log`; the latter may be empty. */
export function splitResource(rule: string): readonly [resource: string, subresource: string] {
  const slash = rule.indexOf('/');
  return slash === -1 ? [rule, ''] : [rule.slice(0, slash), rule.slice(slash + 1)];
}

/** Parts of a rule in the order in which they are explained. */
const CONSTRAINTS = ['resources', 'apiGroups', 'apiVersions', 'operations', 'scope'] as const;
const ANYTHING: Omit<MatchRule, 'resources'> = {
  apiGroups: ['*'],
  apiVersions: ['*'],
  operations: ['*'],
  scope: '*',
};

/**
 * Why no rule matches a request: the first part of the rules that is for other requests, as `operations: CREATE, UPDATE`.
 * Undefined if one matches.
 */
export function unmetConstraint(
  rules: readonly MatchRule[],
  request: RuleRequest,
  resource: GroupVersionResource,
): string | undefined {
  let nearest = rules;
  for (const constraint of CONSTRAINTS) {
    const taken = CONSTRAINTS.slice(1, CONSTRAINTS.indexOf(constraint) + 1);
    const partOf = (rule: MatchRule): MatchRule => ({
      ...rule,
      ...ANYTHING,
      ...Object.fromEntries(taken.map((one) => [one, rule[one]])),
    });
    const matching = nearest.filter((rule) => ruleMatches(partOf(rule), request, resource));
    if (matching.length === 0) {
      const values = nearest.flatMap((rule) => rule[constraint]).map((value) => (value === '' ? '""' : value));
      return `${constraint}: ${[...new Set(values)].join(', ') || 'none'}`;
    }
    nearest = matching;
  }
  return undefined;
}
