// Requests that no policy of a namespace sees, as a match condition: see src/resources/policies/namespaced-exemptions.ts.
import {
  CLUSTER_COLLECTORS,
  hasOrAll,
  type MatchRule,
  PRIVILEGED_GROUPS,
  splitResource,
  TOKEN_REQUESTS,
} from '../../resources/index.ts';
import { quotedList } from './quoted-list.ts';

const REMOVED_FINALIZERS =
  'object.metadata.?finalizers.orValue([]).all(one, one in oldObject.metadata.?finalizers.orValue([])) && size(object.metadata.?finalizers.orValue([])) < size(oldObject.metadata.?finalizers.orValue([]))';

/**
 * When a request that the rules of a webhook match is exempt from policies of namespaces, in CEL. Undefined if they match no such
 * request: a match condition costs API servers time for every request.
 *
 * - requests for privileged kinds;
 * - deletions by the garbage collector and the namespace controller, and their removals of finalizers.
 *
 * @param unnamed further groups that are exempt
 */
export function namespacedExemption(rules: readonly MatchRule[], unnamed: readonly string[]): string | undefined {
  const groups = new Set([...unnamed, ...PRIVILEGED_GROUPS.filter((group) => rules.some(matchesGroup(group)))]);
  const exempt = [
    ...(groups.size === 0 ? [] : [`request.resource.group in [${quotedList([...groups])}]`]),
    ...(rules.some(matchesTokens) ? [isTokenRequest()] : []),
    ...collected(rules),
  ];
  return exempt.length === 0 ? undefined : exempt.map((one) => (exempt.length === 1 ? one : `(${one})`)).join(' || ');
}

function matchesGroup(group: string): (rule: MatchRule) => boolean {
  return ({ apiGroups }) => hasOrAll(apiGroups, group);
}

function matchesTokens({ operations, apiGroups, resources }: MatchRule): boolean {
  const { group, resource, subresource } = TOKEN_REQUESTS;
  return (
    hasOrAll(operations, 'CREATE') &&
    hasOrAll(apiGroups, group) &&
    resources.some((one) => {
      const [name, sub] = splitResource(one);
      return hasOrAll([name], resource) && hasOrAll([sub], subresource);
    })
  );
}

function isTokenRequest(): string {
  const { group, resource, subresource } = TOKEN_REQUESTS;
  return `request.resource.group == "${group}" && request.resource.resource == "${resource}" && has(request.subResource) && request.subResource == "${subresource}"`;
}

function collected(rules: readonly MatchRule[]): readonly string[] {
  const removals = [
    ...(rules.some(({ operations }) => hasOrAll(operations, 'DELETE')) ? ['request.operation == "DELETE"'] : []),
    ...(rules.some(({ operations }) => hasOrAll(operations, 'UPDATE'))
      ? [`(request.operation == "UPDATE" && ${REMOVED_FINALIZERS})`]
      : []),
  ];
  return removals.length === 0
    ? []
    : [`request.userInfo.username in [${quotedList(CLUSTER_COLLECTORS)}] && (${removals.join(' || ')})`];
}
