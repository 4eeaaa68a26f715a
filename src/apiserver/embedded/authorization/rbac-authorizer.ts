import { groupResourceOf } from '../../../resources/index.ts';
import type { KubernetesObject } from '../../../resources/index.ts';
import type { AccessAttributes, AccessDecision, Authorizer, ClusterState, UserInfo } from '../request/request.ts';
import { aggregatedRules } from './aggregation.ts';
import { BindingIndex } from './binding-index.ts';
import type { BoundRole, RoleReference } from './binding-index.ts';
import { ruleAllows, rulesOf } from './policy-rule.ts';
import type { PolicyRule } from './policy-rule.ts';
import {
  CLUSTER_ROLE_BINDINGS,
  CLUSTER_ROLES,
  MASTERS_GROUP,
  RBAC_GROUP,
  ROLE_BINDINGS,
  ROLES,
} from './rbac-resources.ts';

/** The rules of a user. */
export interface ResolvedRules {
  readonly rules: readonly PolicyRule[];
  /** Names the roles that bindings refer to and that do not exist. Empty if there are none. */
  readonly error: string;
}

const ALLOWED: AccessDecision = { allowed: true, reason: '' };

/** Caches a value that is computed from the objects of a resource, until one of them changes. */
class CachedByRevision<T> {
  #revision: number | undefined;
  #value: T | undefined;

  get(revision: number, compute: () => T): T {
    if (this.#revision !== revision || this.#value === undefined) {
      this.#value = compute();
      this.#revision = revision;
    }
    return this.#value;
  }
}

/**
 * Role-based access control as in API servers. Bindings are indexed by subject on first use after a change; RoleBindings for
 * each namespace separately.
 */
export class RbacAuthorizer implements Authorizer {
  readonly #state: ClusterState;
  readonly #clusterBindings = new CachedByRevision<BindingIndex>();
  readonly #namespaces = new CachedByRevision<Map<string, BindingIndex>>();
  readonly #clusterRules = new CachedByRevision<Map<string, readonly PolicyRule[]>>();
  /** Rules by stored role, which is immutable. */
  readonly #rules = new WeakMap<KubernetesObject, readonly PolicyRule[]>();

  constructor(state: ClusterState) {
    this.#state = state;
  }

  authorize(attributes: AccessAttributes): AccessDecision {
    const { user, namespace = '' } = attributes;
    if (user.groups.includes(MASTERS_GROUP)) {
      return ALLOWED;
    }
    const errors = new Set<string>();
    for (const grant of this.#grants(user, namespace)) {
      const rules = this.roleRules(grant.role, namespace);
      if (rules === undefined) {
        errors.add(roleNotFound(grant.role));
      } else if (rules.some((rule) => ruleAllows(rule, attributes))) {
        return { allowed: true, reason: `RBAC: allowed by ${grant.description}` };
      }
    }
    return { allowed: false, reason: errors.size === 0 ? '' : `RBAC: ${joinErrors(errors)}` };
  }

  /** All rules of a user: those of the cluster, and those of a namespace if one is given. */
  rulesFor(user: UserInfo, namespace = ''): ResolvedRules {
    const rules: PolicyRule[] = [];
    const errors = new Set<string>();
    for (const grant of this.#grants(user, namespace)) {
      const found = this.roleRules(grant.role, namespace);
      if (found === undefined) {
        errors.add(roleNotFound(grant.role));
      } else {
        rules.push(...found);
      }
    }
    return { rules, error: errors.size === 0 ? '' : joinErrors(errors) };
  }

  /** The rules of a binding's role; undefined when it does not exist. */
  roleRules({ kind, name }: RoleReference, namespace: string): readonly PolicyRule[] | undefined {
    switch (kind) {
      case 'ClusterRole':
        return this.#rulesOfClusterRole(name);
      case 'Role':
        return this.#rulesOfRole(namespace, name);
      default:
        return undefined;
    }
  }

  *#grants(user: UserInfo, namespace: string): Generator<BoundRole> {
    const revision = this.#state.revisionOf(CLUSTER_ROLE_BINDINGS);
    const cluster = this.#clusterBindings.get(
      revision,
      () => new BindingIndex(this.#state.list(CLUSTER_ROLE_BINDINGS)),
    );
    yield* cluster.grantsFor(user);
    if (namespace !== '') {
      yield* this.#bindingsOf(namespace).grantsFor(user);
    }
  }

  #bindingsOf(namespace: string): BindingIndex {
    const indexes = this.#namespaces.get(this.#state.revisionOf(ROLE_BINDINGS), () => new Map());
    const known = indexes.get(namespace);
    if (known !== undefined) {
      return known;
    }
    const index = new BindingIndex(this.#state.list(ROLE_BINDINGS, namespace));
    // Clients may name any number of namespaces, so only those with bindings are cached.
    if (!index.isEmpty) {
      indexes.set(namespace, index);
    }
    return index;
  }

  #rulesOfClusterRole(name: string): readonly PolicyRule[] | undefined {
    const all = this.#clusterRules.get(this.#state.revisionOf(CLUSTER_ROLES), () => new Map());
    const known = all.get(name);
    if (known !== undefined) {
      return known;
    }
    const role = this.#state.get(CLUSTER_ROLES, undefined, name);
    if (role === undefined) {
      return undefined;
    }
    const rules = aggregatedRules(this.#state, role);
    all.set(name, rules);
    return rules;
  }

  #rulesOfRole(namespace: string, name: string): readonly PolicyRule[] | undefined {
    const role = this.#state.get(ROLES, namespace, name);
    if (role === undefined) {
      return undefined;
    }
    const known = this.#rules.get(role) ?? rulesOf(role);
    this.#rules.set(role, known);
    return known;
  }
}

/** The message for a missing role. As in API servers, it has the kind in place of the resource. */
function roleNotFound({ kind, name }: RoleReference): string {
  const resource = groupResourceOf({ group: RBAC_GROUP, resource: kind.toLowerCase() });
  return `${resource} "${name}" not found`;
}

function joinErrors(errors: ReadonlySet<string>): string {
  const texts = [...errors];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}
