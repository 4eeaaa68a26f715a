// The dependency graph of all Policies, rebuilt only after a change of a spec.
import {
  isJsonObject,
  keyOf,
  keyText,
  type ObjectKey,
  own,
  type Policy,
  type PolicySet,
  textOf,
} from '../../resources/index.ts';
import { generationChanged, type ObjectCache, type ObjectIndex } from '../../runtime/index.ts';
import {
  DependencyGraph,
  graphPolicy,
  type GraphPolicy,
  type GraphTemplate,
  isGovernancePolicyKind,
  MAX_GRAPH_DEPENDENCIES,
  objectId,
  policySetsOf,
  readDependencies,
  reachablePolicies,
  type Requirement,
  requirementOf,
} from './index.ts';
import { rootOf } from '../targets/policy-copy.ts';

/** Changes within this time give one graph. Milliseconds. */
const SETTLE_MS = 50;

export interface DependencyGraphsOptions {
  readonly policies: ObjectCache<Policy>;
  /** Undefined: dependencies name no PolicySets, because the Policies are copies. */
  readonly policySets?: ObjectCache<PolicySet>;
  /** The namespace of policies and their templates on the cluster. */
  readonly clusterNamespace: string;
  /** The Policy that is part of the graph for one of the cache; undefined if none is. */
  readonly rootIn: (policy: Policy) => Policy | undefined;
  /** Whether a root goes to a cluster. */
  readonly isPlaced: (root: Policy) => boolean;
}

/** The part of the graph that a Policy depends on. */
export interface GraphPart {
  readonly graph: DependencyGraph;
  /** Whether no Policy was left out. */
  readonly isComplete: boolean;
}

/** Gives the current graph, and says when it changes. */
export class DependencyGraphs {
  readonly #options: DependencyGraphsOptions;
  /** Parts of the graph by the Policies that they were read from. */
  #parts = new WeakMap<Policy, GraphPolicy>();
  #graph: DependencyGraph | undefined;
  /** Roots by the objects of their templates. */
  readonly #containing: ObjectIndex<Policy>;
  /** Roots by the PolicySets that they depend on. */
  readonly #bySet: ObjectIndex<Policy>;

  constructor(options: DependencyGraphsOptions) {
    this.#options = options;
    const { policies, policySets } = options;
    this.#containing = policies.index((policy) => this.#templateIds(options.rootIn(policy)));
    this.#bySet = policies.index((policy) => {
      const root = options.rootIn(policy);
      return root === undefined ? [] : policySetKeys(root);
    });
    policies.subscribe((change) => {
      if (generationChanged(change)) {
        this.#graph = undefined;
      }
    });
    policySets?.subscribe((change) => {
      if (generationChanged(change)) {
        this.reset();
      }
    });
  }

  /** Reads all Policies again, because something else than their specs has changed. */
  reset(): void {
    this.#graph = undefined;
    this.#parts = new WeakMap();
  }

  /** The graph. Policies with too many dependencies are not part of it. */
  current(): DependencyGraph {
    this.#graph ??= this.#build();
    return this.#graph;
  }

  /** Whether all Policies and PolicySets are known. */
  get isSynced(): boolean {
    const { policies, policySets } = this.#options;
    return policies.isSynced && policySets?.isSynced !== false;
  }

  /** What a Policy would depend on, if it was stored. */
  around(candidate: Policy): GraphPart {
    const start = this.#read(candidate);
    const candidateText = keyText(keyOf(candidate));
    return this.#around(start, (root) => (keyText(keyOf(root)) === candidateText ? start : this.#part(root)));
  }

  /**
   * What the Policies that depend on a PolicySet would depend on, if it was stored; undefined if there are none. All of
   * them that would be in a cycle with members of the set are in it, because all depend on the same members.
   */
  aroundSet(key: ObjectKey, members: readonly string[]): GraphPart | undefined {
    const text = keyText(key);
    const dependents = new Set(this.#bySet.get(text));
    const [first] = dependents;
    const parts = new Map<Policy, GraphPolicy>();
    const partOf = (root: Policy): GraphPolicy => {
      const known = parts.get(root);
      const part = known ?? (dependents.has(root) ? this.#read(root, { key: text, members }) : this.#part(root));
      parts.set(root, part);
      return part;
    };
    return first && this.#around(partOf(first), partOf);
  }

  #around(start: GraphPolicy, partOf: (root: Policy) => GraphPolicy): GraphPart {
    const { policies, clusterNamespace } = this.#options;
    const ofStart = new Set(start.templates.map((template) => this.#templateId(template)));
    const targetsOf = (requirement: Requirement): readonly GraphPolicy[] => {
      if (isGovernancePolicyKind(requirement)) {
        const key = rootOf(requirement.name);
        const root = key === undefined ? undefined : policies.get(key);
        return root === undefined ? [] : [partOf(root)];
      }
      const id = objectId(requirement);
      return ofStart.has(id) ? [start] : this.#containing.get(id).map(partOf);
    };
    const { policies: parts, isComplete } = reachablePolicies(start, targetsOf);
    return { graph: new DependencyGraph(parts, clusterNamespace), isComplete };
  }

  /**
   * Calls the listener after changes of specs, which can change the findings about any Policy.
   * @returns a function that unsubscribes
   */
  subscribe(listener: () => void): () => void {
    let timer: NodeJS.Timeout | undefined;
    const soon = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        listener();
      }, SETTLE_MS);
    };
    const { policies, policySets } = this.#options;
    const ends = [
      policies.subscribe((change) => {
        const object = change.after ?? change.before;
        if (generationChanged(change) && object !== undefined && this.#options.rootIn(object) !== undefined) {
          soon();
        }
      }),
      policySets?.subscribe((change) => {
        if (generationChanged(change)) {
          soon();
        }
      }),
    ];
    return () => {
      clearTimeout(timer);
      for (const end of ends) {
        end?.();
      }
    };
  }

  #build(): DependencyGraph {
    const { policies, rootIn, clusterNamespace } = this.#options;
    const parts = policies.list().flatMap((policy) => {
      const root = rootIn(policy);
      return root === undefined ? [] : this.#part(policy, root);
    });
    return new DependencyGraph(fittingParts(parts, MAX_GRAPH_DEPENDENCIES), clusterNamespace);
  }

  /** @param policy that the cache has for the root */
  #part(policy: Policy, root = policy): GraphPolicy {
    const known = this.#parts.get(policy);
    if (known !== undefined) {
      return known;
    }
    const part = this.#read(root);
    this.#parts.set(policy, part);
    return part;
  }

  /** @param changed a PolicySet that is not stored like that */
  #read(root: Policy, changed?: { readonly key: string; readonly members: readonly string[] }): GraphPolicy {
    const { policySets, clusterNamespace, isPlaced } = this.#options;
    return graphPolicy(root, {
      clusterNamespace,
      policiesOfSet: (key: ObjectKey) =>
        keyText(key) === changed?.key ? changed.members : policySets?.get(key)?.spec.policies,
      isPlaced: () => isPlaced(root),
    });
  }

  /** The objects of the templates of a root, as requirements name them. */
  #templateIds(root: Policy | undefined): readonly string[] {
    return (root?.spec['policy-templates'] ?? []).map(({ objectDefinition }) => {
      const metadata = own(objectDefinition, 'metadata');
      const [apiVersion, kind] = [textOf(own(objectDefinition, 'apiVersion')), textOf(own(objectDefinition, 'kind'))];
      const name = textOf(isJsonObject(metadata) ? own(metadata, 'name') : undefined);
      return this.#templateId({ apiVersion, kind, name });
    });
  }

  #templateId({ apiVersion, kind, name }: Pick<GraphTemplate, 'apiVersion' | 'kind' | 'name'>): string {
    const object = { apiVersion, kind, name, namespace: '', compliance: '' };
    return objectId(requirementOf(object, this.#options.clusterNamespace));
  }
}

/** The PolicySets that a root depends on, as `namespace/name`. */
export function policySetKeys({ metadata, spec }: Policy): readonly string[] {
  const listed = [spec.dependencies, ...spec['policy-templates'].map(({ extraDependencies }) => extraDependencies)];
  return listed.flatMap((list) => policySetsOf(readDependencies(list), metadata.namespace ?? '').map(keyText));
}

/** The parts that fit into a graph, smallest first: a user with many dependencies must not take the graph from all others. */
export function fittingParts(parts: readonly GraphPolicy[], most: number): readonly GraphPolicy[] {
  const sized = parts.map((part) => ({
    part,
    size: part.templates.reduce((sum, one) => sum + one.requirements.length, 0),
  }));
  const fitting = new Set<GraphPolicy>();
  let sum = 0;
  for (const { part, size } of sized.toSorted((left, right) => left.size - right.size)) {
    sum += size;
    if (sum > most) {
      break;
    }
    fitting.add(part);
  }
  return parts.filter((part) => fitting.has(part));
}
