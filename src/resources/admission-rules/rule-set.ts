import type { MatchRule } from '../policies/policy-match.ts';
import { BoxIndex, boxOf, DIMENSIONS, distinctBoxes, includesBox, includesValue, membersOf } from './rule-box.ts';
import type { RuleBox } from './rule-box.ts';

/** Steps after which {@link RuleSet.covers} gives up. Rules of people take a few dozen. */
const MAX_STEPS = 20_000;

/** Rules of a webhook, to be asked about others. */
export class RuleSet {
  readonly #boxes: readonly RuleBox[];
  readonly #index: BoxIndex;

  constructor(rules: Iterable<MatchRule>) {
    this.#boxes = distinctBoxes(rules);
    this.#index = new BoxIndex(this.#boxes);
  }

  /**
   * Whether every request that `rule` is for is one that any of these is for. Rules that are too tangled to tell are said not
   * to cover it; none that `unionRules` made of `rule` are.
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

/** {@link RuleSet.covers}, once. */
export function covers(rules: Iterable<MatchRule>, rule: MatchRule): boolean {
  return new RuleSet(rules).covers(rule);
}

/** Goes through the dimensions of a box, one value after the other, with the boxes that are left. */
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
        // There are always more names than rules have: what a star stands for is covered by those with stars only.
        const left = boxes.filter((box) => includesValue(box.values[dimension] ?? [], value, dimension));
        return this.isCoveredBy(left, dimension + 1);
      })
    );
  }
}
