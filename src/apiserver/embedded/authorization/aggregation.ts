import { isJsonObject, labelSelector, SelectorError } from '../../../resources/index.ts';
import type { KubernetesObject, Selector } from '../../../resources/index.ts';
import type { ClusterState } from '../request/request.ts';
import { rulesOf } from './policy-rule.ts';
import type { PolicyRule } from './policy-rule.ts';
import { CLUSTER_ROLES } from './rbac-resources.ts';

/** The selectors of an aggregated ClusterRole. Undefined for a role with its own rules. */
function aggregationOf(role: KubernetesObject): readonly Selector[] | undefined {
  const { aggregationRule } = role;
  if (!isJsonObject(aggregationRule)) {
    return undefined;
  }
  const { clusterRoleSelectors } = aggregationRule;
  return Array.isArray(clusterRoleSelectors) ? clusterRoleSelectors.flatMap(selectorOf) : [];
}

function selectorOf(value: unknown): readonly Selector[] {
  try {
    return [labelSelector(value)];
  } catch (error) {
    if (error instanceof SelectorError) {
      return [];
    }
    throw error;
  }
}

/** Whether a ClusterRole is aggregated, so that its own rules are ignored. */
export function isAggregated(role: KubernetesObject | null): boolean {
  return role !== null && (aggregationOf(role)?.length ?? 0) > 0;
}

/**
 * The rules of a ClusterRole. An aggregated one has the rules of all selected roles, in the order of their names and without
 * duplicates, as the controller of Kubernetes would write them.
 */
export function aggregatedRules(state: ClusterState, role: KubernetesObject): readonly PolicyRule[] {
  const selectors = aggregationOf(role);
  if (selectors === undefined) {
    return rulesOf(role);
  }
  const all = [...state.list(CLUSTER_ROLES)].toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const rules = new Map<string, PolicyRule>();
  const seen = new Set([nameOf(role)]);
  // Depth first. Not recursive, because aggregation may be deep or cyclic.
  const pending: KubernetesObject[] = selectedBy(selectors, all).toReversed();
  for (let one = pending.pop(); one !== undefined; one = pending.pop()) {
    if (seen.has(nameOf(one))) {
      continue;
    }
    seen.add(nameOf(one));
    const nested = aggregationOf(one);
    if (nested !== undefined) {
      pending.push(...selectedBy(nested, all).toReversed());
      continue;
    }
    for (const rule of rulesOf(one)) {
      const key = JSON.stringify(rule);
      if (!rules.has(key)) {
        rules.set(key, rule);
      }
    }
  }
  return [...rules.values()];
}

function selectedBy(selectors: readonly Selector[], roles: readonly KubernetesObject[]): readonly KubernetesObject[] {
  return selectors.flatMap((selector) => roles.filter((role) => selector.matches(role.metadata.labels)));
}

function nameOf(object: KubernetesObject): string {
  return object.metadata.name ?? '';
}
