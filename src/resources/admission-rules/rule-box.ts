import type { MatchRule } from './match-rule.ts';
import { splitResource } from './rule-match.ts';

/** Dimensions of rules: operation, group, version, resource, scope. */
export const DIMENSIONS = 5;
const OPERATIONS = 0;
const RESOURCES = 3;
const SCOPE = 4;
/** The operations that a star includes, in alphabetical order. */
const ALL_OPERATIONS: readonly string[] = ['CONNECT', 'CREATE', 'DELETE', 'UPDATE'];
const SCOPES: readonly string[] = ['Cluster', 'Namespaced'];

/**
 * A rule as a set of requests: those with one of the values in every dimension. Values are sorted, and none includes
 * another, so that equal sets have equal texts.
 */
export interface RuleBox {
  readonly values: readonly (readonly string[])[];
  /** The values of each dimension as text. */
  readonly texts: readonly string[];
}

/** Undefined for a rule that matches no request. */
export function boxOf({ operations, apiGroups, apiVersions, resources, scope }: MatchRule): RuleBox | undefined {
  const scopes = scope === '*' ? SCOPES : SCOPES.filter((one) => one === scope);
  const lists = [operations, apiGroups, apiVersions, resources, scopes];
  return lists.some((list) => list.length === 0) ? undefined : makeBox(lists);
}

/** Equal exactly for equal boxes. */
export function keyOf({ texts }: RuleBox): string {
  return texts.join();
}

/** The boxes of rules without duplicates, in the order of the rules. */
export function distinctBoxes(rules: Iterable<MatchRule>): readonly RuleBox[] {
  const boxes = new Map<string, RuleBox>();
  for (const rule of rules) {
    const box = boxOf(rule);
    if (box !== undefined && !boxes.has(keyOf(box))) {
      boxes.set(keyOf(box), box);
    }
  }
  return [...boxes.values()];
}

/** The rule of a box. */
export function ruleOf({ values }: RuleBox): MatchRule {
  const [operations = [], apiGroups = [], apiVersions = [], resources = [], scopes = []] = values;
  return { operations, apiGroups, apiVersions, resources, scope: scopes.length > 1 ? '*' : (scopes[0] ?? '*') };
}

/** The values of a box in a dimension; a star of a finite dimension is replaced by its values. */
export function membersOf({ values }: RuleBox, dimension: number): readonly string[] {
  const list = values[dimension] ?? [];
  return dimension === OPERATIONS && list[0] === '*' ? ALL_OPERATIONS : list;
}

function makeBox(lists: readonly (readonly string[])[]): RuleBox {
  const values = lists.map(shortest);
  return { values, texts: values.map((list) => JSON.stringify(list)) };
}

/** The values without those that others include. */
function shortest(list: readonly string[], dimension: number): readonly string[] {
  const all = new Set(list);
  if (dimension === RESOURCES) {
    const isIncluded = (value: string): boolean => wider(value, dimension).some((one) => one !== value && all.has(one));
    return [...all].filter((value) => !isIncluded(value)).toSorted();
  }
  if (all.has('*') || (dimension === OPERATIONS && ALL_OPERATIONS.every((operation) => all.has(operation)))) {
    return ['*'];
  }
  return [...all].toSorted();
}

/** All values that include a value, and the value itself. */
function wider(value: string, dimension: number): readonly string[] {
  if (dimension !== RESOURCES) {
    return [value, '*'];
  }
  const [resource, sub] = splitResource(value);
  const both = sub === '' ? [value, '*'] : [value, `*/${sub}`];
  return [...new Set([...both, `${resource}/*`, '*/*'])];
}

/** Merges boxes that differ in at most one dimension. */
export function mergeBoxes(boxes: readonly RuleBox[], dimension: number): RuleBox | undefined {
  const [first] = boxes;
  return (
    first &&
    makeBox(first.values.map((list, at) => (at === dimension ? boxes.flatMap((box) => box.values[at] ?? []) : list)))
  );
}

/** Whether every request of `inner` is a request of `outer`. */
export function includesBox(outer: RuleBox, inner: RuleBox): boolean {
  return outer.values.every(
    (list, dimension) =>
      outer.texts[dimension] === inner.texts[dimension] ||
      inner.values[dimension]?.every((value) => includesValue(list, value, dimension)) === true,
  );
}

/** Whether a list includes every name that a value includes. A list never contains all names that a star includes. */
export function includesValue(list: readonly string[], value: string, dimension: number): boolean {
  return dimension === RESOURCES
    ? list.includes(value) || wider(value, dimension).some((one) => list.includes(one))
    : list.includes(value) || (dimension !== SCOPE && list.includes('*'));
}

/** An index of boxes by their values. */
export class BoxIndex {
  readonly #byValue: readonly Map<string, RuleBox[]>[];

  constructor(boxes: readonly RuleBox[]) {
    this.#byValue = Array.from({ length: DIMENSIONS - 1 }, (_, dimension) => {
      const index = new Map<string, RuleBox[]>();
      for (const box of boxes) {
        for (const value of box.values[dimension] ?? []) {
          const list = index.get(value) ?? [];
          index.set(value, list);
          list.push(box);
        }
      }
      return index;
    });
  }

  /** A superset of the boxes that include a box. */
  candidates(box: RuleBox): readonly RuleBox[] {
    let fewest: readonly (readonly RuleBox[])[] = [];
    let least = Infinity;
    for (const [dimension, index] of this.#byValue.entries()) {
      for (const value of box.values[dimension] ?? []) {
        const found = wider(value, dimension).map((one) => index.get(one) ?? []);
        const count = found.reduce((sum, list) => sum + list.length, 0);
        if (count < least) {
          [fewest, least] = [found, count];
        }
      }
    }
    return fewest.flat();
  }
}
