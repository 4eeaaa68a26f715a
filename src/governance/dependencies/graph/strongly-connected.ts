/** A node whose successors are being visited. */
interface Visit {
  readonly node: number;
  next: number;
}

/**
 * The strongly connected components of a directed graph, by Tarjan's algorithm without recursion. Linear in nodes and
 * edges. A component follows all that it leads to.
 *
 * @param successors of each node
 */
export function stronglyConnected(successors: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const search = new ComponentSearch(successors);
  successors.forEach((_, node) => search.from(node));
  return search.components;
}

class ComponentSearch {
  readonly components: number[][] = [];
  readonly #successors: readonly (readonly number[])[];
  /** Order of the first visit; -1 before it. */
  readonly #order: number[];
  /** The earliest node on the stack that a node leads to. */
  readonly #low: number[];
  readonly #isOnStack: boolean[];
  readonly #stack: number[] = [];
  #visited = 0;

  constructor(successors: readonly (readonly number[])[]) {
    this.#successors = successors;
    this.#order = successors.map(() => -1);
    this.#low = successors.map(() => -1);
    this.#isOnStack = successors.map(() => false);
  }

  from(root: number): void {
    const path: Visit[] = this.#order[root] === -1 ? [this.#enter(root)] : [];
    for (let visit = path.at(-1); visit !== undefined; visit = path.at(-1)) {
      const successor = this.#successors[visit.node]?.[visit.next++];
      if (successor === undefined) {
        path.pop();
        this.#leave(visit.node, path.at(-1)?.node);
      } else if (this.#order[successor] === -1) {
        path.push(this.#enter(successor));
      } else if (this.#isOnStack[successor] === true) {
        this.#lower(visit.node, this.#order[successor]);
      }
    }
  }

  #enter(node: number): Visit {
    this.#order[node] = this.#visited;
    this.#low[node] = this.#visited++;
    this.#stack.push(node);
    this.#isOnStack[node] = true;
    return { node, next: 0 };
  }

  #leave(node: number, parent: number | undefined): void {
    if (this.#low[node] === this.#order[node]) {
      this.#popComponent(node);
    }
    if (parent !== undefined) {
      this.#lower(parent, this.#low[node]);
    }
  }

  #popComponent(root: number): void {
    const component = this.#stack.splice(this.#stack.lastIndexOf(root));
    component.forEach((node) => (this.#isOnStack[node] = false));
    this.components.push(component);
  }

  #lower(node: number, order: number | undefined): void {
    this.#low[node] = Math.min(this.#low[node] ?? 0, order ?? 0);
  }
}
