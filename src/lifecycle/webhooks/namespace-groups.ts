// Groups namespaces by the rules of their policies, so that a tenant's policies never route other tenants' requests to a
// policy server.
import { type MatchRule, type PolicyMatch, unionRules } from '../../resources/index.ts';
import { distinct } from './widest-selector.ts';

/**
 * Groups in one bucket, each a webhook. API servers match every request against every webhook, at some microseconds each;
 * most tenants' policies come from few templates, and need few groups.
 */
export const MAX_NAMESPACE_GROUPS = 32;

/**
 * Namespaces that one webhook names: with names of 63 characters about 140 kB, so that several such webhooks fit into one
 * object. Further namespaces go into webhooks with the same rules.
 */
export const MAX_NAMESPACES = 2_000;

/** Namespaces whose policies in a bucket have the same rules. */
export interface NamespaceGroup {
  readonly namespaces: readonly string[];
  readonly rules: readonly MatchRule[];
  readonly matches: readonly PolicyMatch[];
  /** Number of the group among those with the same rules, from 0. */
  readonly part: number;
}

/** `isMerged`: there were more than {@link MAX_NAMESPACE_GROUPS}, and the smallest ones now share the union of their rules. */
export function namespaceGroups(
  matches: readonly PolicyMatch[],
  keepsOrder: boolean,
): { readonly groups: readonly NamespaceGroup[]; readonly isMerged: boolean } {
  const unions = new Map<string, readonly MatchRule[]>();
  const united = (rules: readonly MatchRule[]): readonly MatchRule[] => {
    const key = JSON.stringify(rules);
    const known = unions.get(key) ?? unionRules(rules, { keepsOrder });
    unions.set(key, known);
    return known;
  };
  const byRules = new Map<string, { rules: readonly MatchRule[]; namespaces: string[]; matches: PolicyMatch[] }>();
  for (const [namespace = '', own] of Map.groupBy(matches, (match) => match.namespace)) {
    const rules = united(sorted(distinct(own.flatMap((match) => match.rules.flatMap(insideNamespaces))), keepsOrder));
    const key = JSON.stringify(rules);
    const group = byRules.get(key) ?? { rules, namespaces: [], matches: [] };
    byRules.set(key, group);
    group.namespaces.push(namespace);
    group.matches.push(...own);
  }
  // Largest first; the order of equally large groups must not depend on the order of policies.
  const all = [...byRules.entries()]
    .toSorted(([key, a], [other, b]) => b.namespaces.length - a.namespaces.length || (key < other ? -1 : 1))
    .map(([, group]) => group);
  const kept = all.length > MAX_NAMESPACE_GROUPS ? all.slice(0, MAX_NAMESPACE_GROUPS - 1) : all;
  const rest = all.slice(kept.length);
  const last =
    rest.length === 0
      ? []
      : [
          {
            rules: unionRules(
              rest.flatMap(({ rules }) => rules),
              { keepsOrder },
            ),
            namespaces: rest.flatMap(({ namespaces }) => namespaces),
            matches: rest.flatMap((group) => group.matches),
          },
        ];
  return { groups: joinedByRules([...kept, ...last]).flatMap(parts), isMerged: rest.length > 0 };
}

type Group = Omit<NamespaceGroup, 'part'>;

/** The merged group may have the same rules as another one. */
function joinedByRules(groups: readonly Group[]): readonly Group[] {
  return [...Map.groupBy(groups, ({ rules }) => JSON.stringify(rules)).values()].map((same) => ({
    rules: same[0]?.rules ?? [],
    namespaces: same.flatMap(({ namespaces }) => namespaces),
    matches: same.flatMap(({ matches }) => matches),
  }));
}

/** A namespaced policy matches objects in its namespace, neither the Namespace itself nor cluster-scoped objects. */
export function insideNamespaces(rule: MatchRule): readonly MatchRule[] {
  return rule.scope === 'Cluster' ? [] : [{ ...rule, scope: 'Namespaced' }];
}

function sorted(rules: readonly MatchRule[], keepsOrder: boolean): readonly MatchRule[] {
  return keepsOrder ? rules : rules.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function parts({ rules, namespaces, matches }: Group): readonly NamespaceGroup[] {
  const all = namespaces.toSorted();
  const count = Math.ceil(all.length / MAX_NAMESPACES);
  return Array.from({ length: count }, (_, part) => ({
    namespaces: all.slice(part * MAX_NAMESPACES, (part + 1) * MAX_NAMESPACES),
    rules,
    matches,
    part,
  }));
}
