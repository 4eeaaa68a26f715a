import { isJsonObject, labelSelector, SelectorError } from '../../../resources/index.ts';
import type { KubernetesObject, Selector } from '../../../resources/index.ts';
import type { ClusterState } from '../request.ts';
import { rulesOf } from './policy-rule.ts';
import type { PolicyRule } from './policy-rule.ts';
import { CLUSTER_ROLES } from './rbac-resources.ts';

/** The selectors of an aggregated role; undefined for one that has its own rules. */
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

/** Whether a ClusterRole is aggregated: its own rules do not count. */
export function isAggregated(role: KubernetesObject | null): boolean {
  return role !== null && (aggregationOf(role)?.length ?? 0) > 0;
}

/**
 * The rules of a ClusterRole. Those of an aggregated one are computed as Kubernetes' controller does: the rules of all
 * selected roles, in the order of their names, each once.
 */
export function aggregatedRules(state: ClusterState, role: KubernetesObject): readonly PolicyRule[] {
  const selectors = aggregationOf(role);
  if (selectors === undefined) {
    return rulesOf(role);
  }
  const all = [...state.list(CLUSTER_ROLES)].toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
  const rules = new Map<string, PolicyRule>();
  const seen = new Set([nameOf(role)]);
  // Depth first, without recursion: aggregation may be deep or cyclic.
  const open: KubernetesObject[] = selectedBy(selectors, all).toReversed();
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (seen.has(nameOf(one))) {
      continue;
    }
    seen.add(nameOf(one));
    const further = aggregationOf(one);
    if (further !== undefined) {
      open.push(...selectedBy(further, all).toReversed());
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
