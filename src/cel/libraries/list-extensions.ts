import { compareValues, isInt, isList, isOrdered, nameOfType, typeNameOf } from '../evaluate/index.ts';
import { exactly, multiplyRanges } from '../model/range.ts';
import type { CallSizes, FunctionDeclaration, Library, Overload } from '../model/library.ts';
import { DYN, INT, listOf, parameter } from '../model/type.ts';
import type { CelType } from '../model/type.ts';
import { EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { ValueSet, withBoundedEquality } from './bounded-comparison.ts';
import { rangeOf, sizeOfArgument, sizeOfResult, TRAVERSAL } from './costs.ts';
import { describe, fail, global, member } from './declare.ts';
import type { Int } from './declare.ts';
import { MAX_LIST_LENGTH } from './limits.ts';
import { COMPARABLE } from './lists.ts';
import { listCost, listEstimate } from './list-costs.ts';

type List = readonly CelValue[];

const T = listOf(parameter('T'));

/** Cost of creating the result. */
const COPY: Required<Pick<Overload, 'cost' | 'costById'>> = {
  cost: (_args, result) => listCost(sizeOfResult(result), 1),
  costById: true,
};

/** Compares all pairs of elements; strings cost more. */
function pairwise(argument: number, type: CelType | undefined): Pick<Overload, 'cost' | 'costById' | 'estimate'> {
  return {
    cost: (args) => {
      const list = args[argument];
      const first = isList(list) ? list[0] : undefined;
      const size = sizeOfArgument(args, argument);
      const isText = typeof first === 'string' || first instanceof Uint8Array;
      return listCost(size * size, isText ? 2 + TRAVERSAL : 2);
    },
    costById: true,
    estimate: (sizes) => {
      const size = rangeOf(sizes, argument);
      const isText = type?.kind === 'string' || type?.kind === 'bytes';
      return listEstimate(multiplyRanges(size, size), isText ? 2 + TRAVERSAL : 2);
    },
  };
}

function literalSize(sizes: CallSizes, index: number, otherwise: number): number {
  const literal = sizes.literals[index];
  return typeof literal === 'number' || typeof literal === 'bigint' ? Math.max(0, Number(literal)) : otherwise;
}

function estimateSlice(sizes: CallSizes) {
  const length = literalSize(sizes, 2, rangeOf(sizes, 0).max) - literalSize(sizes, 1, 0);
  // API servers use unsigned sizes: a negative size is larger than any other.
  return listEstimate(exactly(length < 0 ? Infinity : length), 1);
}

const FLATTEN: Pick<Overload, 'cost' | 'costById' | 'estimate' | 'isUnguarded' | 'work'> = {
  work: flattenWork,
  cost: (args) => listCost(sizeOfArgument(args, 0), args.length === 2 ? Number(args[1]) : 1),
  costById: true,
  isUnguarded: true,
  estimate: (sizes) => listEstimate(rangeOf(sizes, 0), sizes.args.length === 2 ? literalSize(sizes, 1, Infinity) : 1),
};

const TOO_MANY = `flatten: too many elements: expected at most ${MAX_LIST_LENGTH}`;

/** Elements that are visited before a call fails. What it returns is charged for otherwise. */
function flattenWork(_args: readonly CelValue[], result: CelResult): number {
  return result instanceof EvaluationFailure && result.message === TOO_MANY ? MAX_LIST_LENGTH : 0;
}

const KEYED_SORT: FunctionDeclaration = {
  name: '@sortByAssociatedKeys',
  overloads: COMPARABLE.map(([, type]) =>
    member(`list_${nameOfType(type)}_sortByAssociatedKeys`, [T, listOf(type)], T, sortByKeys, {
      ...pairwise(1, type),
      isUnguarded: true,
    }),
  ),
};

/** cel-go's list functions, which later API servers support. */
export const LIST_EXTENSIONS_LIBRARY: Library = {
  name: 'Lists',
  since: 34,
  functions: [
    describe(
      'slice',
      'The elements from a start index up to, but not including, an end index.',
      ['[1, 2, 3, 4].slice(1, 3)', '[2, 3]'],
      [member('list_slice', [T, INT, INT], T, slice, { ...COPY, estimate: estimateSlice })],
    ),
    describe(
      'flatten',
      'The list with nested lists replaced by their elements, down to a depth (default: 1).',
      ['[[1], [2, 3]].flatten()', '[1, 2, 3]'],
      [
        member('list_flatten', [listOf(T)], T, flatten, FLATTEN),
        member('list_flatten_int', [listOf(DYN), INT], listOf(DYN), flatten, FLATTEN),
      ],
    ),
    describe(
      'sort',
      'The elements in ascending order; all must have the same type.',
      ['[3, 1, 2].sort()', '[1, 2, 3]'],
      COMPARABLE.map(([, type]) =>
        member(
          `list_${nameOfType(type)}_sort`,
          [listOf(type)],
          listOf(type),
          (list: CelValue) => sortByKeys(list, list, `sort(${typeNameOf(list)})`),
          { ...pairwise(0, type), isUnguarded: true },
        ),
      ),
    ),
    KEYED_SORT,
    describe(
      'lists.range',
      'The integers from 0 up to, but not including, the argument.',
      ['lists.range(3)', '[0, 1, 2]'],
      [
        global('lists_range', [INT], listOf(INT), range, {
          ...COPY,
          estimate: (sizes) => listEstimate(exactly(literalSize(sizes, 0, Infinity)), 1),
        }),
      ],
    ),
    describe(
      'reverse',
      'The elements in reverse order.',
      ['[1, 2].reverse()', '[2, 1]'],
      [
        member('list_reverse', [T], T, (list: List) => list.toReversed(), {
          ...COPY,
          estimate: (sizes) => listEstimate(rangeOf(sizes, 0), 1),
        }),
      ],
    ),
    describe(
      'distinct',
      'The elements without duplicates; the first of equal elements is kept.',
      ['[1, 2, 1].distinct()', '[1, 2]'],
      [member('list_distinct', [T], T, distinct, pairwise(0, undefined))],
    ),
  ],
};

function slice(list: List, start: Int, end: Int): CelResult {
  const problem = sliceProblem(list.length, start, end);
  return problem === undefined
    ? list.slice(Number(start), Number(end))
    : fail(`cannot slice(${start}, ${end}), ${problem}`);
}

function sliceProblem(length: number, start: Int, end: Int): string | undefined {
  if (start < 0 || end < 0) {
    return 'negative indexes not supported';
  }
  if (start > end) {
    return 'start index must be less than or equal to end index';
  }
  return end > length ? `list is length ${length}` : undefined;
}

/** Accepts lists without nested lists too, which the checker rejects if it knows the type. */
function flatten(list: CelValue, depth?: CelValue): CelResult {
  if (!isList(list) || (depth !== undefined && !isInt(depth))) {
    return fail(`${NO_SUCH_OVERLOAD}: ${typeText(list)}.flatten(${depth === undefined ? '' : typeText(depth)})`);
  }
  return depth !== undefined && depth < 0 ? fail('level must be non-negative') : flattenTo(list, depth ?? 1);
}

/** A type name as in errors of `flatten`. */
function typeText(value: CelValue): string {
  const name = typeNameOf(value);
  return name === 'map' ? 'map(dyn, dyn)' : name;
}

/** Not recursive, because lists may be nested to any depth; limited, because lists may be shared. */
function flattenTo(list: List, depth: Int): CelResult {
  const result: CelValue[] = [];
  const pending: { list: List; next: number }[] = [{ list, next: 0 }];
  for (let steps = 0; pending.length > 0; steps++) {
    const top = pending.at(-1);
    if (top === undefined || steps > 2 * MAX_LIST_LENGTH) {
      return fail(TOO_MANY);
    }
    const element = top.list[top.next++];
    if (element === undefined) {
      pending.pop();
    } else if (isList(element) && pending.length <= depth) {
      pending.push({ list: element, next: 0 });
    } else {
      result.push(element);
    }
  }
  return result;
}

/** Elements sorted by their keys; the sort is stable. */
function sortByKeys(list: CelValue, keys: CelValue, call = 'sortBy(list)'): CelResult {
  if (!isList(list) || !isList(keys)) {
    return fail(`${NO_SUCH_OVERLOAD}: ${call}`);
  }
  if (list.length !== keys.length) {
    return fail(
      `@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got ${list.length} and ${keys.length} elements respectively`,
    );
  }
  const first = keys[0];
  if (first === undefined) {
    return list;
  }
  if (!isOrdered(first)) {
    return fail('list elements must be comparable');
  }
  const type = typeNameOf(first);
  if (keys.some((key) => typeNameOf(key) !== type)) {
    return fail('list elements must have the same type');
  }
  const order = Array.from(keys, (key, index) => ({ key, index }));
  order.sort((left, right) => orderOf(left.key, right.key));
  return order.map(({ index }) => list[index] ?? null);
}

/** Values without an order (NaN) count as equal. */
function orderOf(left: CelValue, right: CelValue): number {
  const order = compareValues(left, right);
  return order instanceof EvaluationFailure ? 0 : order;
}

function range(count: Int): CelResult {
  if (count < 0) {
    return fail(`lists.range: size must be non-negative, got ${count}`);
  }
  if (count > MAX_LIST_LENGTH) {
    return fail(`lists.range: size ${count} exceeds maximum allowed (${MAX_LIST_LENGTH})`);
  }
  return Array.from({ length: Number(count) }, (_, index) => index);
}

function distinct(list: List): CelResult {
  return withBoundedEquality((isEqual) => {
    const seen = new ValueSet(isEqual);
    return list.filter((element) => {
      const isNew = !seen.has(element);
      if (isNew) {
        seen.add(element);
      }
      return isNew;
    });
  });
}
