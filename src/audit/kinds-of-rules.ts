import type { ApiResource } from '../cluster/index.ts';
import {
  equivalentGroups,
  groupResourceOf,
  GUARDED_GROUPS,
  isPrivileged,
  type MatchRule,
  type PolicyMatch,
  ruleMatches,
  splitResource,
  webhookMatches,
} from '../resources/index.ts';

/** The served kinds that rules match. */
export interface KindsOfRules {
  /** Each in one version that a rule names, the preferred one if possible. */
  readonly kinds: readonly ApiResource[];
  /** Named by a rule, but not to be listed. */
  readonly unlistable: readonly ApiResource[];
}

/** Requests that bring objects to their state. */
const WRITES = ['create', 'update', 'patch'];

/**
 * The kinds whose objects a policy is for, workloads whose pod templates it checks included. Stars stand for all kinds that are
 * written and listed.
 */
export function kindsOfRules(match: PolicyMatch, served: readonly ApiResource[]): KindsOfRules {
  const rules = webhookMatches(match).flatMap((one) => one.rules);
  const kinds = new Map<string, ApiResource>();
  const unlistable = new Map<string, ApiResource>();
  for (const type of served) {
    const name = groupResourceOf(type);
    const matching = rules.filter((rule) => matchesKind(rule, type));
    if (matching.length === 0 || kinds.has(name) || isExempt(match, type)) {
      continue;
    }
    const isNamed = matching.some((rule) => namesKind(rule, type));
    if (!type.verbs.includes('list')) {
      if (isNamed) {
        unlistable.set(name, type);
      }
    } else if (!isAnotherOf(type, kinds) && (isNamed || WRITES.some((verb) => type.verbs.includes(verb)))) {
      kinds.set(name, type);
    }
  }
  return { kinds: [...kinds.values()], unlistable: [...unlistable.values()] };
}

function matchesKind(rule: MatchRule, type: ApiResource): boolean {
  const request = { operation: 'CREATE', subresource: '', namespace: type.namespaced ? 'any' : '' };
  return ruleMatches(rule, request, type);
}

function namesKind({ apiGroups, resources }: MatchRule, { group, resource }: ApiResource): boolean {
  return apiGroups.includes(group) && resources.some((one) => splitResource(one)[0] === resource);
}

/** Whether no policy in its place sees the kind: see GUARDED_GROUPS, and exemptions of policies of namespaces. */
function isExempt({ namespace, rules }: PolicyMatch, type: ApiResource): boolean {
  return namespace === undefined
    ? GUARDED_GROUPS.includes(type.group) && !rules.some(({ apiGroups }) => apiGroups.includes(type.group))
    : !type.namespaced || isPrivileged(type, '');
}

/** Whether the same objects are chosen in another group. */
function isAnotherOf({ group, resource }: ApiResource, chosen: ReadonlyMap<string, ApiResource>): boolean {
  return equivalentGroups(group, resource).some(
    (other) => other !== group && chosen.has(groupResourceOf({ group: other, resource })),
  );
}
