import { isNamespaces } from './attributes.ts';
import type { RequestAttributes, ResourceId } from './attributes.ts';
import type { WebhookRule } from './webhook.ts';

/** Whether a rule is for a request, taken as one for `resource`. */
export function ruleMatches(rule: WebhookRule, attributes: RequestAttributes, resource: ResourceId): boolean {
  return (
    scopeMatches(rule.scope, attributes, resource) &&
    hasOrAll(rule.operations, attributes.request.operation) &&
    hasOrAll(rule.apiGroups, resource.group) &&
    hasOrAll(rule.apiVersions, resource.version) &&
    rule.resources.some((one) => resourceMatches(one, resource.resource, attributes.subresource))
  );
}

function scopeMatches(scope: string, { namespace }: RequestAttributes, resource: ResourceId): boolean {
  // Namespaces are in no namespace, though requests for one carry its name.
  const isInCluster = namespace === '' || isNamespaces(resource);
  switch (scope) {
    case '*':
      return true;
    case 'Cluster':
      return isInCluster;
    case 'Namespaced':
      return !isInCluster;
    default:
      return false;
  }
}

function resourceMatches(rule: string, resource: string, subresource: string): boolean {
  const slash = rule.indexOf('/');
  const [ruled, ruledSub] = slash === -1 ? [rule, ''] : [rule.slice(0, slash), rule.slice(slash + 1)];
  return (ruled === '*' || ruled === resource) && (ruledSub === '*' || ruledSub === subresource);
}

function hasOrAll(list: readonly string[], value: string): boolean {
  return list.includes('*') || list.includes(value);
}
