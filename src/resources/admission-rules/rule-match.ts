import type { MatchRule } from '../policies/policy-match.ts';

/** A resource as AdmissionReviews name it. */
export interface ResourceId {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** What rules look at of a request, besides the resource that it is taken as one for. */
export interface RuleRequest {
  readonly operation: string;
  /** Empty for the resource itself. */
  readonly subresource: string;
  /** Empty for what is in no namespace; requests for a namespace carry its name. */
  readonly namespace: string;
}

/**
 * Whether a rule is for a request, taken as one for `resource`: as API servers match the rules of webhooks
 * (`admissionregistration.k8s.io/v1` RuleWithOperations).
 */
export function ruleMatches(rule: MatchRule, request: RuleRequest, resource: ResourceId): boolean {
  return (
    scopeMatches(rule.scope, isInNamespace(request, resource)) &&
    hasOrAll(rule.operations, request.operation) &&
    hasOrAll(rule.apiGroups, resource.group) &&
    hasOrAll(rule.apiVersions, resource.version) &&
    rule.resources.some((one) => resourceMatches(one, resource.resource, request.subresource))
  );
}

/** Whether a request is for something in a namespace. Namespaces are in none, though requests for one carry its name. */
export function isInNamespace({ namespace }: Pick<RuleRequest, 'namespace'>, resource: ResourceId): boolean {
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

function hasOrAll(list: readonly string[], value: string): boolean {
  return list.includes('*') || list.includes(value);
}

function resourceMatches(rule: string, resource: string, subresource: string): boolean {
  const [ruled, ruledSub] = splitResource(rule);
  return (ruled === '*' || ruled === resource) && (ruledSub === '*' || ruledSub === subresource);
}

/** Resource and subresource of a rule's `pods/log`; the latter is empty where there is none. */
export function splitResource(rule: string): readonly [resource: string, subresource: string] {
  const slash = rule.indexOf('/');
  return slash === -1 ? [rule, ''] : [rule.slice(0, slash), rule.slice(slash + 1)];
}
