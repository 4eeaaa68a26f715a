import { jsonText } from '../../go/index.ts';
import { isJsonObject } from '../../values/index.ts';
import type { FieldsV1 } from '../kubernetes-object.ts';
import { checkMergeDepth, MergeError } from './merge-error.ts';
import { compareElements, parsePathElement } from './path-element.ts';
import type { FieldPath, PathElement } from './path-element.ts';

interface Node {
  readonly element: PathElement;
  /** Whether the path to this node is in the set, independent of paths below it. */
  isMember: boolean;
  children: FieldSet | undefined;
}

/** Maximum number of fields in one entry of `metadata.managedFields`: a hundred times that of large objects. */
const MAX_FIELDS = 500_000;

/**
 * A set of paths into an object. A path may be in it without those above and below it. The function that creates a set
 * fills it with {@link insert}; afterwards it does not change.
 */
export class FieldSet {
  readonly #nodes = new Map<string, Node>();

  /** A set with these paths. */
  static of(paths: Iterable<FieldPath>): FieldSet {
    const set = new FieldSet();
    for (const path of paths) {
      set.insert(path);
    }
    return set;
  }

  /** Parses `fieldsV1`. Throws MergeError `fields-malformed`. */
  static parse(fields: unknown): FieldSet {
    const budget = { fields: MAX_FIELDS };
    return parsed(fields, 0, budget).children ?? new FieldSet();
  }

  /** Adds one path without its parents. The empty path is ignored. */
  insert(path: FieldPath, at = 0): void {
    const element = path[at];
    if (element === undefined) {
      return;
    }
    const node = this.#node(element);
    if (at === path.length - 1) {
      node.isMember = true;
    } else {
      node.children ??= new FieldSet();
      node.children.insert(path, at + 1);
    }
  }

  /** Adds an element with its subtree, for building a set bottom-up. */
  put(element: PathElement, isMember: boolean, children: FieldSet | undefined): void {
    const kept = children === undefined || children.isEmpty ? undefined : children;
    if (isMember || kept !== undefined) {
      this.#nodes.set(element.text, { element, isMember, children: kept });
    }
  }

  get isEmpty(): boolean {
    return this.#nodes.size === 0;
  }

  /** Number of paths. */
  get size(): number {
    let count = 0;
    for (const { isMember, children } of this.#nodes.values()) {
      count += (isMember ? 1 : 0) + (children?.size ?? 0);
    }
    return count;
  }

  has(path: FieldPath, at = 0): boolean {
    const element = path[at];
    const node = element === undefined ? undefined : this.#nodes.get(element.text);
    if (node === undefined) {
      return false;
    }
    return at === path.length - 1 ? node.isMember : node.children?.has(path, at + 1) === true;
  }

  hasElement(element: PathElement): boolean {
    return this.#nodes.get(element.text)?.isMember === true;
  }

  /** The subtree of an element; undefined when it is empty. */
  below(element: PathElement): FieldSet | undefined {
    return this.#nodes.get(element.text)?.children;
  }

  /** The first elements of its paths, in no particular order. */
  *nodes(): Iterable<{
    readonly element: PathElement;
    readonly isMember: boolean;
    readonly children: FieldSet | undefined;
  }> {
    yield* this.#nodes.values();
  }

  /** The paths: at each level first those that end there, in the order of their elements, then deeper ones. */
  *paths(prefix: FieldPath = []): Iterable<FieldPath> {
    const nodes = this.#sorted();
    for (const { element, isMember } of nodes) {
      if (isMember) {
        yield [...prefix, element];
      }
    }
    for (const { element, children } of nodes) {
      if (children !== undefined) {
        yield* children.paths([...prefix, element]);
      }
    }
  }

  union(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const [text, node] of this.#nodes) {
      const theirs = other.#nodes.get(text);
      const children =
        node.children === undefined || theirs?.children === undefined
          ? (node.children ?? theirs?.children)
          : node.children.union(theirs.children);
      result.put(node.element, node.isMember || theirs?.isMember === true, children);
    }
    for (const [text, node] of other.#nodes) {
      if (!this.#nodes.has(text)) {
        result.put(node.element, node.isMember, node.children);
      }
    }
    return result;
  }

  /** The union of several sets, pairwise, so that large sets are copied less often. */
  static unionOf(sets: readonly FieldSet[]): FieldSet {
    if (sets.length < 2) {
      return sets[0] ?? new FieldSet();
    }
    const half = sets.length >> 1;
    return FieldSet.unionOf(sets.slice(0, half)).union(FieldSet.unionOf(sets.slice(half)));
  }

  intersection(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const [text, node] of this.#nodes) {
      const theirs = other.#nodes.get(text);
      if (theirs !== undefined) {
        const children = theirs.children === undefined ? undefined : node.children?.intersection(theirs.children);
        result.put(node.element, node.isMember && theirs.isMember, children);
      }
    }
    return result;
  }

  /** The paths that are not in the other set, whatever it has above or below them. */
  difference(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const [text, node] of this.#nodes) {
      const theirs = other.#nodes.get(text);
      const children = theirs?.children === undefined ? node.children : node.children?.difference(theirs.children);
      result.put(node.element, node.isMember && theirs?.isMember !== true, children);
    }
    return result;
  }

  /** The paths that are neither in the other set nor below one of its paths. */
  without(other: FieldSet): FieldSet {
    const result = new FieldSet();
    for (const [text, node] of this.#nodes) {
      const theirs = other.#nodes.get(text);
      if (theirs?.isMember !== true) {
        const children = theirs?.children === undefined ? node.children : node.children?.without(theirs.children);
        result.put(node.element, node.isMember, children);
      }
    }
    return result;
  }

  /** The paths that are no prefix of another path. */
  leaves(): FieldSet {
    const result = new FieldSet();
    for (const { element, isMember, children } of this.#nodes.values()) {
      result.put(element, isMember && children === undefined, children?.leaves());
    }
    return result;
  }

  equals(other: FieldSet): boolean {
    if (this.#nodes.size !== other.#nodes.size) {
      return false;
    }
    for (const [text, node] of this.#nodes) {
      const theirs = other.#nodes.get(text);
      if (theirs === undefined || theirs.isMember !== node.isMember) {
        return false;
      }
      const isSame =
        node.children === undefined || theirs.children === undefined
          ? node.children === theirs.children
          : node.children.equals(theirs.children);
      if (!isSame) {
        return false;
      }
    }
    return true;
  }

  /** The set as `fieldsV1`, with sorted keys. */
  toFieldsV1(): FieldsV1 {
    return Object.fromEntries(this.#fields());
  }

  #fields(): readonly (readonly [string, FieldsV1])[] {
    return this.#sorted().map(({ element, isMember, children }) => [
      element.text,
      children === undefined
        ? {}
        : Object.fromEntries(isMember ? [['.', {}] as const, ...children.#fields()] : children.#fields()),
    ]);
  }

  #sorted(): readonly Node[] {
    return [...this.#nodes.values()].sort((a, b) => compareElements(a.element, b.element));
  }

  #node(element: PathElement): Node {
    let node = this.#nodes.get(element.text);
    if (node === undefined) {
      node = { element, isMember: false, children: undefined };
      this.#nodes.set(element.text, node);
    }
    return node;
  }
}

function parsed(
  fields: unknown,
  depth: number,
  budget: { fields: number },
): { readonly isMember: boolean; readonly children: FieldSet | undefined } {
  checkMergeDepth(depth);
  if (!isJsonObject(fields)) {
    throw new MergeError('fields-malformed', `expected a set of fields to be an object, got ${jsonText(fields)}`);
  }
  const children = new FieldSet();
  let isMember = false;
  for (const [key, value] of Object.entries(fields)) {
    budget.fields--;
    if (budget.fields < 0) {
      throw new MergeError('fields-malformed', `a set of fields has more than ${MAX_FIELDS} fields`);
    }
    if (key === '.') {
      isMember = true;
      continue;
    }
    const element = parsePathElement(key);
    if (element !== undefined) {
      const below = parsed(value, depth + 1, budget);
      const before = children.below(element);
      children.put(
        element,
        below.isMember || children.hasElement(element),
        before === undefined || below.children === undefined
          ? (below.children ?? before)
          : before.union(below.children),
      );
    }
  }
  return children.isEmpty ? { isMember: true, children: undefined } : { isMember, children };
}
