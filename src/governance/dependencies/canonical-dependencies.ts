// Canonical names: replicas of policies are named `<namespace>.<name>`, and dependencies name replicas.
import { groupVersionOf, type ObjectKey, GOVERNANCE_GROUP, MAX_DEPENDENCIES } from '../../resources/index.ts';
import { type Dependency, DependencyError, isGovernancePolicyKind } from './dependency.ts';

/** The names in `spec.policies` of a PolicySet; undefined if it does not exist. */
export type PolicySetLookup = (key: {
  readonly namespace: string;
  readonly name: string;
}) => readonly string[] | undefined;

/**
 * Dependencies of a root policy with canonical names, and with the policies of each PolicySet in its place. A PolicySet
 * that does not exist stays, and is never met.
 *
 * @param policyNamespace namespace of the root policy
 * @throws DependencyError when there are more than {@link MAX_DEPENDENCIES}
 */
export function canonicalDependencies(
  dependencies: readonly Dependency[],
  policyNamespace: string,
  policiesOfSet: PolicySetLookup,
): readonly Dependency[] {
  const canonical: Dependency[] = [];
  for (const dependency of dependencies) {
    const expanded = expand(dependency, policyNamespace, policiesOfSet);
    if (canonical.length + expanded.length > MAX_DEPENDENCIES) {
      throw new DependencyError(
        'too-many-dependencies',
        `expected at most ${MAX_DEPENDENCIES} dependencies after the expansion of PolicySets, got more with ${dependency.kind} ${dependency.name}: depend on fewer objects`,
      );
    }
    canonical.push(...expanded);
  }
  return canonical;
}

/**
 * Maximum number of dependencies of all templates of a Policy together, those of the Policy counted for each: every pass
 * looks up each of them. A thousand templates with ten each.
 */
const MAX_TEMPLATE_DEPENDENCIES = 10_000;

/**
 * Refuses a Policy whose evaluation would keep all others waiting.
 * @param ofPolicy number of dependencies of the Policy
 * @param ofTemplates number of further dependencies of each template
 * @throws DependencyError
 */
export function checkDependencyCount(ofPolicy: number, ofTemplates: readonly number[]): void {
  const count = ofTemplates.reduce((sum, further) => sum + ofPolicy + further, 0);
  if (count > MAX_TEMPLATE_DEPENDENCIES) {
    throw new DependencyError(
      'too-many-dependencies',
      `expected at most ${MAX_TEMPLATE_DEPENDENCIES} dependencies of all templates of a Policy together, got ${count}: move templates to another Policy`,
    );
  }
}

/** The PolicySets among the dependencies, which change what a policy depends on. */
export function policySetsOf(
  dependencies: readonly Dependency[],
  policyNamespace: string,
): readonly Required<ObjectKey>[] {
  const sets = dependencies.filter(isPolicySet).map((set) => setKey(set, policyNamespace));
  return [...new Map(sets.map((set) => [`${set.namespace}/${set.name}`, set])).values()];
}

function expand(
  dependency: Dependency,
  policyNamespace: string,
  policiesOfSet: PolicySetLookup,
): readonly Dependency[] {
  if (isPolicySet(dependency)) {
    const set = setKey(dependency, policyNamespace);
    const { compliance } = dependency;
    return (
      policiesOfSet(set)?.map((name) => ({
        apiVersion: `${GOVERNANCE_GROUP}/v1`,
        kind: 'Policy',
        name: `${set.namespace}.${name}`,
        namespace: '',
        compliance,
      })) ?? [dependency]
    );
  }
  return [isGovernancePolicyKind(dependency) ? canonicalPolicy(dependency, policyNamespace) : dependency];
}

/** A dotted name without a namespace is canonical already. */
function canonicalPolicy(dependency: Dependency, policyNamespace: string): Dependency {
  const { namespace, name } = dependency;
  const isCanonical = namespace === '' && name.includes('.');
  return { ...dependency, name: isCanonical ? name : `${namespace || policyNamespace}.${name}`, namespace: '' };
}

function isPolicySet({ apiVersion, kind }: Dependency): boolean {
  return kind === 'PolicySet' && groupVersionOf(apiVersion).group === GOVERNANCE_GROUP;
}

function setKey({ namespace, name }: Dependency, policyNamespace: string): Required<ObjectKey> {
  return { namespace: namespace || policyNamespace, name };
}
