import type { MatchRule } from './match-rule.ts';
import { BoxIndex, boxOf, DIMENSIONS, distinctBoxes, includesBox, includesValue, membersOf } from './rule-box.ts';
import type { RuleBox } from './rule-box.ts';

/** Maximum number of steps of {@link RuleSet.covers}. Usual rules take a few dozen. */
const MAX_STEPS = 20_000;

/** A set of rules that can cover others. */
export class RuleSet {
  readonly #boxes: readonly RuleBox[];
  readonly #index: BoxIndex;

  constructor(rules: Iterable<MatchRule>) {
    this.#boxes = distinctBoxes(rules);
    this.#index = new BoxIndex(this.#boxes);
  }

  /**
   * Whether every request that `rule` matches is matched by one of these rules. False when the search exceeds its
   * limit, which never happens for a rule and its own `unionRules`.
   */
  covers(rule: MatchRule): boolean {
    const box = boxOf(rule);
    return (
      box === undefined ||
      this.#index.candidates(box).some((outer) => includesBox(outer, box)) ||
      new Cover(box).isCoveredBy(this.#boxes, 0)
    );
  }
}

/** Goes through the dimensions of a box, value by value, with the boxes that still match. */
class Cover {
  readonly #inner: RuleBox;
  #steps = 0;

  constructor(inner: RuleBox) {
    this.#inner = inner;
  }

  isCoveredBy(boxes: readonly RuleBox[], dimension: number): boolean {
    if (boxes.length === 0 || this.#steps++ > MAX_STEPS) {
      return false;
    }
    return (
      dimension === DIMENSIONS ||
      membersOf(this.#inner, dimension).every((value) => {
        // Rules cannot list all names, so the names of a star are covered only by boxes with stars.
        const left = boxes.filter((box) => includesValue(box.values[dimension] ?? [], value, dimension));
        return this.isCoveredBy(left, dimension + 1);
      })
    );
  }
}
