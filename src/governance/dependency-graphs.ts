// The dependency graph of all Policies of the cluster, rebuilt only after a change of a spec.
import type { ObjectKey, Policy, PolicySet } from '../resources/index.ts';
import { generationChanged, type ObjectCache } from '../runtime/index.ts';
import { DependencyGraph, graphPolicy, type GraphPolicy, MAX_GRAPH_DEPENDENCIES } from './dependencies/index.ts';
import { type GovernanceSettings, isGoverned } from './governance-settings.ts';

/** Changes within this time give one graph. Milliseconds. */
const SETTLE_MS = 50;

export interface DependencyGraphsOptions {
  readonly settings: GovernanceSettings;
  readonly policies: ObjectCache<Policy>;
  readonly policySets: ObjectCache<PolicySet>;
}

/** Gives the current graph, and says when it changes. */
export class DependencyGraphs {
  readonly #options: DependencyGraphsOptions;
  /** Parts of the graph by the Policies that they were read from. */
  #parts = new WeakMap<Policy, GraphPolicy>();
  #graph: DependencyGraph | undefined;

  constructor(options: DependencyGraphsOptions) {
    this.#options = options;
    const { policies, policySets } = options;
    policies.subscribe((change) => {
      if (generationChanged(change)) {
        this.#graph = undefined;
      }
    });
    policySets.subscribe((change) => {
      if (generationChanged(change)) {
        this.#graph = undefined;
        this.#parts = new WeakMap();
      }
    });
  }

  /** The graph. Policies with too many dependencies are not part of it. */
  current(): DependencyGraph {
    this.#graph ??= this.#build();
    return this.#graph;
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
        if (generationChanged(change) && this.#isRoot(object)) {
          soon();
        }
      }),
      policySets.subscribe((change) => {
        if (generationChanged(change)) {
          soon();
        }
      }),
    ];
    return () => {
      clearTimeout(timer);
      for (const end of ends) {
        end();
      }
    };
  }

  #build(): DependencyGraph {
    const { policies, settings } = this.#options;
    const roots = policies.list().filter((policy) => this.#isRoot(policy));
    const parts = roots.map((root) => this.#part(root));
    return new DependencyGraph(fittingParts(parts, MAX_GRAPH_DEPENDENCIES), settings.clusterName);
  }

  #part(root: Policy): GraphPolicy {
    const known = this.#parts.get(root);
    if (known !== undefined) {
      return known;
    }
    const { policySets, settings } = this.#options;
    const part = graphPolicy(root, {
      clusterNamespace: settings.clusterName,
      policiesOfSet: (key: ObjectKey) => policySets.get(key)?.spec.policies,
      isPlaced: ({ metadata }) => settings.mode === 'standalone' && isGoverned(metadata.namespace ?? '', settings),
    });
    this.#parts.set(root, part);
    return part;
  }

  #isRoot({ metadata }: Policy): boolean {
    return metadata.namespace !== this.#options.settings.clusterName;
  }
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
