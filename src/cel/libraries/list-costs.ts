import { isList, isMap, keysOf, findInMap } from '../evaluate/index.ts';
import { addRanges, exactly, multiplyRanges, scaleRange, UNKNOWN_RANGE } from '../model/range.ts';
import { CALL_COST } from '../model/library.ts';
import type { CallEstimate, CallSizes, Overload, Range } from '../model/library.ts';
import type { CelType } from '../model/type.ts';
import type { CelValue } from '../model/value.ts';
import { LIST_BASE, rangeOf, TRAVERSAL } from './costs.ts';
import { MAX_VISITED } from './limits.ts';

/** Cost of traversing a value: bytes of strings, contents of lists and maps, 1 for other values. */
export function traversalCost(value: CelValue): number {
  const pending: CelValue[] = [value];
  let cost = 0;
  for (let visited = 0; pending.length > 0; visited++) {
    if (visited > MAX_VISITED) {
      return Infinity;
    }
    const next = pending.pop() ?? null;
    if (typeof next === 'string') {
      cost += Math.floor(Buffer.byteLength(next, 'utf8') * TRAVERSAL);
    } else if (next instanceof Uint8Array) {
      cost += Math.floor(next.length * TRAVERSAL);
    } else if (isList(next)) {
      for (const element of next) {
        pending.push(element);
      }
    } else if (isMap(next)) {
      for (const key of keysOf(next)) {
        pending.push(key, findInMap(next, key) ?? null);
      }
    } else {
      cost += CALL_COST;
    }
  }
  return cost;
}

/** The type of the elements of a list or the keys of a map. */
function elementType(type: CelType | undefined): CelType | undefined {
  switch (type?.kind) {
    case 'list':
      return type.element;
    case 'map':
      return type.key;
    case 'opaque':
      return type.parameters[0];
    default:
      return undefined;
  }
}

/** Bounds of the sizes of the receiver's elements; undefined if its type has none. */
export function elementSizes(sizes: CallSizes): Range | undefined {
  return elementType(sizes.types[0]) === undefined ? undefined : (sizes.elements[0] ?? UNKNOWN_RANGE);
}

/** Traverses every element, including the contents of strings and bytes. */
function estimateElements(sizes: CallSizes): CallEstimate | undefined {
  const type = elementType(sizes.types[0]);
  if (type === undefined) {
    return undefined;
  }
  const isText = type.kind === 'string' || type.kind === 'bytes';
  const perElement = isText
    ? addRanges(exactly(1), scaleRange(elementSizes(sizes) ?? UNKNOWN_RANGE, TRAVERSAL))
    : exactly(1);
  return { cost: multiplyRanges(rangeOf(sizes, 0), perElement) };
}

type Costs = Required<Pick<Overload, 'cost' | 'estimate'>>;

/** Functions that traverse a list, or a string for functions of the same name. */
export const SEARCH: Costs = {
  cost: ([receiver = null]) => traversalCost(receiver),
  estimate: (sizes) => estimateElements(sizes) ?? { cost: scaleRange(rangeOf(sizes, 0), TRAVERSAL) },
};

/** `includes`, with a receiver of any type. */
export const INCLUDES: Costs = {
  cost: SEARCH.cost,
  estimate: (sizes) => estimateElements(sizes) ?? { cost: rangeOf(sizes, 0) },
};

/** Cost of a call that creates a list after some work. */
export function listCost(size: number, factor: number): number {
  return Math.floor(size * Math.max(factor < 0 ? 1 : factor, 0)) + CALL_COST + LIST_BASE;
}

/** Estimated cost of such a call. */
export function listEstimate(size: Range, factor: number): CallEstimate {
  return { cost: addRanges(scaleRange(size, factor), exactly(CALL_COST), exactly(LIST_BASE)), size };
}
