// The dependency graph of all Policies of the cluster, built anew only after a change of a spec.
import type { ObjectKey, Policy, PolicySet } from '../resources/index.ts';
import { generationChanged, type ObjectCache } from '../runtime/index.ts';
import { DependencyGraph, graphPolicy, type GraphPolicy } from './dependencies/index.ts';
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

  /** @throws DependencyError when there are too many dependencies */
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
    return new DependencyGraph(
      roots.map((root) => this.#part(root)),
      settings.clusterName,
    );
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
