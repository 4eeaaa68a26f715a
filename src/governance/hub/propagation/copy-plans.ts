// Which clusters a Policy goes to, and with which copies; or why it applies nowhere. Nothing is written here.
import { keyOf, type Policy, type PolicyDependency, type PolicySet, type Readiness } from '../../../resources/index.ts';
import type { ObjectCache } from '../../../runtime/index.ts';
import {
  canonicalDependencies,
  checkDependencyCount,
  DependencyError,
  readDependencies,
} from '../../dependencies/index.ts';
import { type GovernedNamespaces, isGoverned } from '../../settings/governance-settings.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';
import { canonicalSpec, copyName, policyCopy } from '../../targets/policy-copy.ts';
import type { Target, Targets } from '../../targets/targets.ts';

/** The clusters that a Policy goes to. */
export interface CopyPlan {
  readonly targets: readonly Target[];
  /** The copy for one of them, with unresolved templates of the hub. */
  readonly copyFor: (target: Target) => Policy;
}

export interface CopyPlansOptions {
  readonly governed: GovernedNamespaces;
  readonly targets: Targets;
  readonly policySets: Pick<ObjectCache<PolicySet>, 'get'>;
}

export class CopyPlans {
  readonly #options: CopyPlansOptions;

  constructor(options: CopyPlansOptions) {
    this.#options = options;
  }

  /** The clusters of a Policy as it is applied; or, for its status, why it applies nowhere. */
  of(root: Policy): CopyPlan | Readiness {
    const targets = this.#options.targets.of(root);
    const name = copyName(keyOf(root));
    const notApplied = this.#notApplied(root, name, targets);
    if (notApplied !== undefined) {
      return notApplied;
    }
    try {
      const spec = this.#spec(root);
      return { targets, copyFor: (target) => policyCopy(root, name ?? '', target, spec) };
    } catch (error) {
      if (!(error instanceof DependencyError)) {
        throw error;
      }
      return { state: 'stalled', reason: POLICY_REASONS.dependenciesInvalid, message: error.message };
    }
  }

  #notApplied(
    { metadata: { namespace = '' }, spec }: Policy,
    name: string | undefined,
    targets: readonly Target[],
  ): Readiness | undefined {
    if (!isGoverned(namespace, this.#options.governed)) {
      const message = `Policies in namespace ${namespace} do not count: see --governance-namespaces`;
      return { state: 'stalled', reason: POLICY_REASONS.namespaceNotGoverned, message };
    }
    if (name === undefined) {
      const message = 'the name is too long: its copy is named NAMESPACE.NAME, which has at most 253 characters';
      return { state: 'stalled', reason: POLICY_REASONS.nameTooLong, message };
    }
    if (spec.disabled) {
      return { state: 'ready', reason: POLICY_REASONS.disabled, message: 'the Policy is disabled' };
    }
    return targets.length === 0
      ? { state: 'ready', reason: POLICY_REASONS.notPlaced, message: 'the Policy is placed on no cluster' }
      : undefined;
  }

  /** @throws DependencyError */
  #spec(root: Policy): Policy['spec'] {
    const { policySets } = this.#options;
    const spec = canonicalSpec(
      root.spec,
      (dependencies) =>
        canonicalDependencies(
          readDependencies(dependencies),
          root.metadata.namespace ?? '',
          (set) => policySets.get(set)?.spec.policies,
          // The states are those of the root, which the schema of the kind has checked.
        ) as readonly PolicyDependency[],
    );
    checkDependencyCount(
      spec.dependencies?.length ?? 0,
      spec['policy-templates'].map(({ extraDependencies = [] }) => extraDependencies.length),
    );
    return spec;
  }
}
