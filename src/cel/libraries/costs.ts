import { matchCost, PATTERN_FACTOR, sizeOf, TRAVERSAL_FACTOR } from '../evaluate/index.ts';
import { addRanges, exactly, multiplyRanges, scaleRange, UNKNOWN_RANGE } from '../model/range.ts';
import { CALL_COST } from '../model/library.ts';
import type { CallEstimate, CallSizes, Overload, Range } from '../model/library.ts';
import { EvaluationFailure } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';

/** Cost of traversing a string per code point or byte, as in API servers. */
export const TRAVERSAL = TRAVERSAL_FACTOR;
/** Cost per code point of a regular expression. */
const PATTERN = PATTERN_FACTOR;
/** Cost of creating a list. */
export const LIST_BASE = 10;
/** Cost of creating an object. */
const STRUCT_BASE = 40;

type Costs = Required<Pick<Overload, 'cost' | 'estimate'>>;

export function sizeOfResult(result: CelResult): number {
  return result instanceof EvaluationFailure ? 1 : sizeOf(result);
}

export function sizeOfArgument(args: readonly CelValue[], index: number): number {
  return sizeOf(args[index] ?? null);
}

/** Bounds of an argument's size. */
export function rangeOf(sizes: CallSizes, index: number): Range {
  return sizes.args[index] ?? UNKNOWN_RANGE;
}

/** A fixed cost. */
export function fixed(cost: number): Costs {
  return { cost: () => cost, estimate: () => ({ cost: exactly(cost) }) };
}

/** Accessors of parsed values. Explicit, because API servers declare their costs by function name. */
export const NOMINAL: Costs = fixed(CALL_COST);

/** One pass over an argument; `passes: 2` if the parsed string is also compared. */
export function scan(options: { passes?: 1 | 2; keepsSize?: boolean } = {}): Costs {
  const passes = options.passes ?? 1;
  return {
    cost: (args) => Math.ceil(sizeOfArgument(args, 0) * passes * TRAVERSAL),
    estimate: (sizes) => {
      const size = rangeOf(sizes, 0);
      const cost = scaleRange(size, passes * TRAVERSAL);
      return options.keepsSize === true ? { cost, size } : { cost };
    },
  };
}

export const MATCH: Costs = {
  cost: (args) => matchCost(sizeOfArgument(args, 0), sizeOfArgument(args, 1)),
  estimate: (sizes) => {
    const text = scaleRange(addRanges(rangeOf(sizes, 0), exactly(1)), TRAVERSAL);
    const pattern = scaleRange(rangeOf(sizes, 1), PATTERN);
    return { cost: multiplyRanges(text, pattern), size: { min: 0, max: rangeOf(sizes, 0).max } };
  },
};

/** Estimated cost of matching a string against a pattern, given their sizes. */
export function matchEstimate(text: Range, pattern: number): CallEstimate {
  return { cost: scaleRange(scaleRange(text, TRAVERSAL), pattern * PATTERN) };
}

/** A label or field selector: a list of requirements, each a struct with a list. */
function selectorCost(length: number): number {
  return LIST_BASE + Math.ceil(length * TRAVERSAL) + Math.ceil(length / 2) * (LIST_BASE + STRUCT_BASE);
}

export const SELECTOR: Costs = {
  cost: (args) => selectorCost(sizeOfArgument(args, 1)),
  estimate: (sizes) => {
    const length = rangeOf(sizes, 1);
    const requirements = scaleRange(scaleRange(length, 0.5), LIST_BASE + STRUCT_BASE);
    return { cost: addRanges(exactly(LIST_BASE), scaleRange(length, TRAVERSAL), requirements) };
  },
};
