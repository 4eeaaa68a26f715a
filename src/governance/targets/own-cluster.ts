import type { Target, Targets } from './targets.ts';

/** The cluster itself as the only one: all Policies go to it, or none, where a Policy must be placed and nothing places it yet. */
export class OwnCluster implements Targets {
  readonly #namespace: string;
  readonly #targets: readonly Target[];

  /**
   * @param name of the cluster, and of its namespace
   * @param needsPlacement whether a Policy without a placement applies nowhere
   */
  constructor(name: string, needsPlacement: boolean) {
    this.#namespace = name;
    this.#targets = needsPlacement ? [] : [{ name, namespace: name }];
  }

  of(): readonly Target[] {
    return this.#targets;
  }

  hasCopies(namespace: string): boolean {
    return namespace === this.#namespace;
  }

  /** Never calls the listener: the only cluster stays while the process runs. */
  subscribe(): () => void {
    return () => undefined;
  }
}
