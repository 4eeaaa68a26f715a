// Who keeps strings in a heap snapshot: the private field of a class that is next to each string on the way from the roots.
import { readFileSync } from 'node:fs';

/** https://github.com/v8/v8/blob/main/src/profiler/heap-snapshot-generator.cc writes it. */
interface Snapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[];
      readonly node_types: readonly [readonly string[], ...unknown[]];
      readonly edge_fields: readonly string[];
      readonly edge_types: readonly [readonly string[], ...unknown[]];
    };
  };
  readonly nodes: readonly number[];
  readonly edges: readonly number[];
  readonly strings: readonly string[];
}

/** Where strings are kept without a private field on the way. */
const ELSEWHERE = 'elsewhere';

const STRING_TYPES: ReadonlySet<string> = new Set(['string', 'concatenated string', 'sliced string']);
/** These keep nothing alive: keys of a WeakMap, and V8's table of equal strings. */
const WEAK_NAMES: ReadonlySet<string> = new Set(['WeakMap', 'WeakSet', '(Internalized strings)']);

/** Classes that hold entries for others. */
const CONTAINERS: ReadonlySet<string> = new Set(['KeptEntries']);

/** Different matches of the pattern among the strings of a heap snapshot, by who keeps them, such as `WorkQueue.#waiting`. */
export function heapCensus(file: string, pattern: RegExp): ReadonlyMap<string, ReadonlySet<string>> {
  const heap = new Heap(JSON.parse(readFileSync(file, 'utf8')) as Snapshot);
  const kept = new Map<string, Set<string>>();
  for (const [node, text] of heap.strings()) {
    const [match] = pattern.exec(text) ?? [];
    if (match !== undefined) {
      const keeper = heap.keeperOf(node);
      kept.set(keeper, (kept.get(keeper) ?? new Set()).add(match));
    }
  }
  return kept;
}

class Heap {
  readonly #snapshot: Snapshot;
  readonly #nodeSize: number;
  readonly #edgeSize: number;
  /** Index of the first edge, by node. */
  readonly #firstEdge: Uint32Array;
  /** The edge on the shortest way from the root, and the node that it comes from. 0: there is no way. */
  readonly #edgeTo: Uint32Array;
  readonly #parentOf: Uint32Array;

  constructor(snapshot: Snapshot) {
    this.#snapshot = snapshot;
    const { node_fields: nodeFields, edge_fields: edgeFields } = snapshot.snapshot.meta;
    this.#nodeSize = nodeFields.length;
    this.#edgeSize = edgeFields.length;
    const count = snapshot.nodes.length / this.#nodeSize;
    this.#firstEdge = new Uint32Array(count + 1);
    const edgeCount = nodeFields.indexOf('edge_count');
    for (let node = 0; node < count; node += 1) {
      const edges = snapshot.nodes[node * this.#nodeSize + edgeCount] ?? 0;
      this.#firstEdge[node + 1] = (this.#firstEdge[node] ?? 0) + edges;
    }
    this.#edgeTo = new Uint32Array(count);
    this.#parentOf = new Uint32Array(count);
    this.#findWays();
  }

  /** Strings that are kept. */
  *strings(): Generator<readonly [node: number, text: string]> {
    for (let node = 1; node < this.#parentOf.length; node += 1) {
      if (STRING_TYPES.has(this.#typeOf(node)) && this.#edgeTo[node] !== 0) {
        yield [node, this.#nameOf(node)];
      }
    }
  }

  keeperOf(node: number): string {
    for (let at = node; at !== 0; at = this.#parentOf[at] ?? 0) {
      const label = this.#labelOf(this.#edgeTo[at] ?? 0);
      const owner = this.#nameOf(this.#parentOf[at] ?? 0);
      if (label.startsWith('#') && !CONTAINERS.has(owner)) {
        return `${owner}.${label}`;
      }
    }
    return ELSEWHERE;
  }

  #findWays(): void {
    for (let level = [0]; level.length > 0;) {
      const next: number[] = [];
      for (const node of level.filter((one) => !WEAK_NAMES.has(this.#nameOf(one)))) {
        for (let edge = this.#firstEdge[node] ?? 0; edge < (this.#firstEdge[node + 1] ?? 0); edge += 1) {
          const to = (this.#snapshot.edges[edge * this.#edgeSize + 2] ?? 0) / this.#nodeSize;
          if (to !== 0 && this.#edgeTo[to] === 0 && this.#edgeType(edge) !== 'weak') {
            this.#edgeTo[to] = edge;
            this.#parentOf[to] = node;
            next.push(to);
          }
        }
      }
      level = next;
    }
  }

  #typeOf(node: number): string {
    return this.#snapshot.snapshot.meta.node_types[0][this.#snapshot.nodes[node * this.#nodeSize] ?? 0] ?? '';
  }

  #nameOf(node: number): string {
    return this.#snapshot.strings[this.#snapshot.nodes[node * this.#nodeSize + 1] ?? 0] ?? '';
  }

  #edgeType(edge: number): string {
    return this.#snapshot.snapshot.meta.edge_types[0][this.#snapshot.edges[edge * this.#edgeSize] ?? 0] ?? '';
  }

  #labelOf(edge: number): string {
    const isNamed = this.#edgeType(edge) === 'property' || this.#edgeType(edge) === 'context';
    return isNamed ? (this.#snapshot.strings[this.#snapshot.edges[edge * this.#edgeSize + 1] ?? 0] ?? '') : '';
  }
}
