// Which subresources of pods the rules of a policy leave out.
import { type RequestRule, ruleMatches } from '../../../resources/index.ts';

const PODS = { group: '', version: 'v1', resource: 'pods' };

export const EPHEMERAL_CONTAINERS_MISSED =
  'ephemeral containers are added (kubectl debug) by pods/ephemeralcontainers only, which the rules leave out: add it to resources, with the operation UPDATE';

/** Whether rules match the creation or updates of pods. */
export function matchesPods(rules: readonly RequestRule[]): boolean {
  return matches(rules, 'CREATE', '') || matches(rules, 'UPDATE', '');
}

/** Whether rules match pods, and not their ephemeral containers. */
export function missesEphemeralContainers(rules: readonly RequestRule[]): boolean {
  return matchesPods(rules) && !matches(rules, 'UPDATE', 'ephemeralcontainers');
}

/** Whether rules match updates of pods, and not those by a subresource. */
export function missesUpdates(rules: readonly RequestRule[], subresource: 'ephemeralcontainers' | 'resize'): boolean {
  return matches(rules, 'UPDATE', '') && !matches(rules, 'UPDATE', subresource);
}

function matches(rules: readonly RequestRule[], operation: string, subresource: string): boolean {
  const request = { operation, subresource, namespace: 'any' };
  return rules.some(({ apiGroups = [], apiVersions, resources, operations = [], scope = '*' }) =>
    ruleMatches({ apiGroups, apiVersions, resources, operations, scope }, request, PODS),
  );
}
