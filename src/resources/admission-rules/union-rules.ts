import type { MatchRule } from './match-rule.ts';
import { BoxIndex, DIMENSIONS, distinctBoxes, includesBox, keyOf, mergeBoxes, ruleOf } from './rule-box.ts';
import type { RuleBox } from './rule-box.ts';

export interface UnionOptions {
  /**
   * Whether the order of rules matters: with matchPolicy Equivalent and different versions in the rules, an API server
   * converts to the version of the first matching rule. Nothing is merged then.
   */
  readonly keepsOrder?: boolean;
}

/**
 * A short list of rules that match exactly the requests of the given ones, independent of their order unless it is
 * kept. Rules that include one another, or differ in one dimension, are merged.
 */
export function unionRules(
  rules: Iterable<MatchRule>,
  { keepsOrder = false }: UnionOptions = {},
): readonly MatchRule[] {
  const boxes = distinctBoxes(rules);
  if (keepsOrder) {
    return firstOnly(boxes).map(ruleOf);
  }
  let united = boxes.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  for (let before = Infinity; united.length < before;) {
    before = united.length;
    for (let dimension = 0; dimension < DIMENSIONS; dimension++) {
      united = merged(united, dimension);
    }
    united = withoutIncluded(united);
  }
  return united.map(ruleOf).toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

/** Omits rules that a previous one includes. */
function firstOnly(boxes: readonly RuleBox[]): readonly RuleBox[] {
  const index = new BoxIndex(boxes);
  const places = new Map(boxes.map((box, at) => [box, at]));
  return boxes.filter(
    (box, at) => !index.candidates(box).some((other) => (places.get(other) ?? at) < at && includesBox(other, box)),
  );
}

function withoutIncluded(boxes: readonly RuleBox[]): RuleBox[] {
  const index = new BoxIndex(boxes);
  return boxes.filter((box) => !index.candidates(box).some((other) => other !== box && includesBox(other, box)));
}

/** Merges rules that differ in only one dimension. */
function merged(boxes: readonly RuleBox[], dimension: number): RuleBox[] {
  const groups = Map.groupBy(boxes, (box) => box.texts.toSpliced(dimension, 1).join());
  return [...groups.values()].flatMap((group) => (group.length === 1 ? group : (mergeBoxes(group, dimension) ?? [])));
}
