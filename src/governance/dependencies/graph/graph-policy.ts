import { type KubernetesObject, type ObjectKey, keyText } from '../../../resources/index.ts';
import { isJsonObject, own, textOf, valueAt } from '../../../values/index.ts';
import { canonicalDependencies, checkDependencyCount, type PolicySetLookup } from '../canonical-dependencies.ts';
import { type Dependency, DependencyError, readDependencies, type Requirement } from '../dependency.ts';
import { unionDependencies } from '../union-dependencies.ts';

/** A root policy in the graph of a cluster. */
export interface GraphPolicy {
  readonly namespace: string;
  readonly name: string;
  /** Whether the policy is to be on this cluster. */
  readonly isPlaced: boolean;
  readonly templates: readonly GraphTemplate[];
  /** What is wrong with its dependencies. */
  readonly problems: readonly string[];
}

export interface GraphTemplate {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty if the template has none. */
  readonly name: string;
  readonly ignorePending: boolean;
  /** Its own dependencies and those of its policy. */
  readonly requirements: readonly Requirement[];
}

export interface GraphSource {
  readonly clusterNamespace: string;
  readonly policiesOfSet: PolicySetLookup;
  /** Default: every policy that is not disabled. */
  readonly isPlaced?: (policy: KubernetesObject) => boolean;
}

/** A root policy as the graph needs it. */
export function graphPolicy(policy: KubernetesObject, source: GraphSource): GraphPolicy {
  const { namespace = '', name = '' } = policy.metadata;
  const problems = new Set<string>();
  /** The result, or nothing for dependencies that are refused. */
  const unlessRefused = <Result>(read: () => readonly Result[]): readonly Result[] => {
    try {
      return read();
    } catch (error) {
      if (error instanceof DependencyError) {
        problems.add(error.message);
        return [];
      }
      throw error;
    }
  };
  const canonical = (list: unknown): readonly Dependency[] =>
    unlessRefused(() => canonicalDependencies(readDependencies(list), namespace, source.policiesOfSet));
  const listed = valueAt(policy, 'spec', 'policy-templates');
  const definitions = Array.isArray(listed) ? listed.filter(isJsonObject) : [];
  const ofPolicy = canonical(valueAt(policy, 'spec', 'dependencies'));
  const ofTemplates = definitions.map((template) => canonical(own(template, 'extraDependencies')));
  const [topLevel, extras] = unlessRefused(() => {
    checkDependencyCount(
      ofPolicy.length,
      ofTemplates.map(({ length }) => length),
    );
    return [[ofPolicy, ofTemplates] as const];
  })[0] ?? [[], []];
  const templates = definitions.map((template, index): GraphTemplate => {
    const extra = extras[index] ?? [];
    const { requirements, conflict } = unionDependencies(topLevel, extra, source.clusterNamespace);
    if (conflict !== undefined) {
      problems.add(conflict);
    }
    return {
      apiVersion: textOf(valueAt(template, 'objectDefinition', 'apiVersion')),
      kind: textOf(valueAt(template, 'objectDefinition', 'kind')),
      name: textOf(valueAt(template, 'objectDefinition', 'metadata', 'name')),
      ignorePending: own(template, 'ignorePending') === true,
      requirements,
    };
  });
  const isEnabled = valueAt(policy, 'spec', 'disabled') !== true;
  const isPlaced = isEnabled && (source.isPlaced?.(policy) ?? true);
  return { namespace, name, isPlaced, templates, problems: [...problems] };
}

/** `namespace/name`, as messages name a policy. */
export function policyText({ namespace, name }: Required<ObjectKey>): string {
  return keyText({ namespace, name });
}
