import type { CallEstimate, CallSizes, Overload, Range } from '../model/library.ts';
import { addRanges, exactly, multiplyRanges, scaleRange, uniteRanges, UNKNOWN_RANGE } from '../model/range.ts';
import type { CelValue } from '../model/value.ts';
import { sizeOf } from './size.ts';

/** Cost of traversing a string per code point, as in API servers. */
export const TRAVERSAL_FACTOR = 0.1;
/** Cost of a regular expression per code point of the pattern, multiplied by the cost of the string. */
export const PATTERN_FACTOR = 0.25;

/** Cost of traversing a value of this size. */
export function traversal(size: number): number {
  return Math.ceil(size * TRAVERSAL_FACTOR);
}

/** Cost of matching a regular expression. */
export function matchCost(textSize: number, patternSize: number): number {
  return traversal(1 + textSize) * Math.ceil(patternSize * PATTERN_FACTOR);
}

type Costs = Pick<Overload, 'cost' | 'costById' | 'estimate'>;

function sizeAt(sizes: CallSizes, index: number): Range {
  return sizes.args[index] ?? UNKNOWN_RANGE;
}

function actualSize(args: readonly CelValue[], index: number): number {
  const value = args[index];
  return value === undefined ? 1 : sizeOf(value);
}

function ofSizes(cost: (sizeAt: (index: number) => number) => number, estimate: Overload['estimate']): Costs {
  return {
    costById: true,
    cost: (args) => cost((index) => actualSize(args, index)),
    ...(estimate === undefined ? {} : { estimate }),
  };
}

function estimateOf(cost: Range, size?: Range): CallEstimate {
  return size === undefined ? { cost } : { cost, size };
}

/** Costs of overloads that cost more than 1, by id. Some estimates use the size of another argument, as cel-go does. */
export const STANDARD_COSTS: ReadonlyMap<string, Costs> = new Map([
  ...['starts_with_string', 'ends_with_string'].map((id): [string, Costs] => [
    id,
    ofSizes(
      (size) => traversal(size(0)),
      (sizes) => estimateOf(scaleRange(sizeAt(sizes, 1), TRAVERSAL_FACTOR)),
    ),
  ]),
  [
    'string_to_bytes',
    ofSizes(
      (size) => traversal(size(0)),
      (sizes) => {
        const text = sizeAt(sizes, 0);
        return estimateOf(scaleRange(text, TRAVERSAL_FACTOR), { min: text.min, max: text.max * 4 });
      },
    ),
  ],
  [
    'bytes_to_string',
    ofSizes(
      (size) => traversal(size(0)),
      (sizes) => {
        const bytes = sizeAt(sizes, 0);
        return estimateOf(scaleRange(bytes, TRAVERSAL_FACTOR), { min: Math.floor(bytes.min / 4), max: bytes.max });
      },
    ),
  ],
  [
    'in_list',
    ofSizes(
      (size) => size(1),
      (sizes) => estimateOf(sizeAt(sizes, 1)),
    ),
  ],
  [
    'matches_string',
    ofSizes(
      (size) => matchCost(size(0), size(1)),
      (sizes) =>
        estimateOf(
          multiplyRanges(
            scaleRange(addRanges(sizeAt(sizes, 0), exactly(1)), TRAVERSAL_FACTOR),
            scaleRange(sizeAt(sizes, 1), PATTERN_FACTOR),
          ),
        ),
    ),
  ],
  [
    'contains_string',
    ofSizes(
      (size) => traversal(size(0)) * traversal(size(1)),
      (sizes) =>
        estimateOf(
          multiplyRanges(
            scaleRange(sizeAt(sizes, 0), TRAVERSAL_FACTOR),
            scaleRange(sizeAt(sizes, 1), TRAVERSAL_FACTOR),
          ),
        ),
    ),
  ],
  ...['add_string', 'add_bytes'].map((id): [string, Costs] => [
    id,
    ofSizes(
      (size) => traversal(size(0) + size(1)),
      (sizes) => {
        const sum = addRanges(sizeAt(sizes, 0), sizeAt(sizes, 1));
        return estimateOf(scaleRange(sum, TRAVERSAL_FACTOR), sum);
      },
    ),
  ]),
  ['add_list', { estimate: (sizes) => estimateOf(exactly(1), addRanges(sizeAt(sizes, 0), sizeAt(sizes, 1))) }],
  ['conditional', { estimate: (sizes) => estimateOf(exactly(0), uniteRanges(sizeAt(sizes, 1), sizeAt(sizes, 2))) }],
  ...['less', 'less_equals', 'greater', 'greater_equals']
    .flatMap((name) => [`${name}_string`, `${name}_bytes`])
    .concat('equals', 'not_equals')
    .map((id): [string, Costs] => [id, comparisonCosts()]),
]);

function comparisonCosts(): Costs {
  return ofSizes(
    (size) => traversal(Math.min(size(0), size(1))),
    (sizes) => {
      const max = Math.min(sizeAt(sizes, 0).max, sizeAt(sizes, 1).max);
      return estimateOf(scaleRange({ min: Math.min(max, 1), max }, TRAVERSAL_FACTOR));
    },
  );
}
