import type { Labels } from '../../resources/index.ts';

/** The labels of a cluster's namespaces, as far as this thread was told: what selectors of namespaces look at. */
export class NamespaceLabels {
  #known = new Map<string, Labels>();

  /** How many namespaces are known. */
  get size(): number {
    return this.#known.size;
  }

  /** Undefined when the namespace is not known, which need not mean that there is none. */
  get(name: string): Labels | undefined {
    return this.#known.get(name);
  }

  set(name: string, labels: Labels): void {
    this.#known.set(name, labels);
  }

  delete(name: string): void {
    this.#known.delete(name);
  }

  /** These namespaces, and no others: what a list of them said. */
  replace(all: Iterable<readonly [name: string, labels: Labels]>): void {
    this.#known = new Map(all);
  }
}
