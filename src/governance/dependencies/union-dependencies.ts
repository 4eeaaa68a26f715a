import { type Dependency, objectId, type Requirement, requirementOf } from './dependency.ts';

/** What one template depends on. */
export interface DependencyUnion {
  readonly requirements: readonly Requirement[];
  /** Set when one object must have two states: the template can never be applied. */
  readonly conflict: string | undefined;
}

/**
 * The dependencies of a policy and the extra ones of a template. A conflict within the policy's own list counts as well:
 * upstream drops the second of the two silently.
 */
export function unionDependencies(
  topLevel: readonly Dependency[],
  extra: readonly Dependency[],
  clusterNamespace: string,
): DependencyUnion {
  const union = new Map<string, Requirement>();
  let conflict: string | undefined;
  for (const dependency of [...topLevel, ...extra]) {
    const requirement = requirementOf(dependency, clusterNamespace);
    const id = objectId(requirement);
    const before = union.get(id);
    if (before !== undefined && before.compliance !== requirement.compliance) {
      conflict ??= `dependency on ${dependency.name} has conflicting compliance states`;
    }
    union.set(id, before ?? requirement);
  }
  return { requirements: [...union.values()], conflict };
}
