import { CALL_COST } from '../model/library.ts';
import { EvaluationFailure } from '../model/value.ts';
import type { CelMap, CelRecord, CelResult, CelValue } from '../model/value.ts';
import { goTypeOf } from './access.ts';
import { failureOf } from './attribute.ts';
import { insertInto } from './extension-libraries.ts';
import { ELEMENTS_PER_WORK } from './frame.ts';
import type { Frame, Run } from './frame.ts';
import { MapBuilder, findInMap, keysOf } from './map.ts';
import { CelStruct } from './struct.ts';
import { isList, isMap } from './type-name.ts';

// The loops that macros expand to. Each kind of macro has its own loop, which counts exactly the cost of the expanded
// expression in API servers: the lookup of the accumulator (1), the creation of a list (10), the call that joins (1).

/** Cost of looking up the accumulator. */
const LOOKUP_COST = 1;
/** Cost of `[element]`, unless the element is a literal. */
const LIST_COST = 10;

/** The range of a loop and the slots of its variables. */
export interface Iteration {
  readonly id: number;
  readonly range: Run;
  readonly slot: number;
  /** Slot of the second variable. */
  readonly secondSlot: number | undefined;
}

/** Called for each element; returns true to continue. */
type Visit = (frame: Frame) => boolean;

/**
 * Iterates over a list or map and checks the limits for each element.
 * @returns a failure if the range is a failure or cannot be iterated
 */
function iterate(
  frame: Frame,
  { id, range, slot, secondSlot }: Iteration,
  visit: Visit,
): EvaluationFailure | undefined {
  const items = range(frame);
  if (secondSlot !== undefined) {
    return iteratePairs(frame, items, { id, slot, secondSlot }, visit);
  }
  if (isList(items)) {
    return iterateList(frame, items, slot, visit);
  }
  if (items instanceof EvaluationFailure) {
    return items;
  }
  const keys = keysOfRange(frame, items);
  return keys === undefined
    ? new EvaluationFailure(`got '${goTypeOf(items)}', expected iterable type`, id)
    : iterateList(frame, keys, slot, visit);
}

/** The keys of a map or struct. Listing them is counted as work even if the loop ends early. */
function keysOfRange(frame: Frame, range: CelValue): readonly CelValue[] | undefined {
  const keys = isMap(range) ? keysOf(range) : range instanceof CelStruct ? range.fieldNames() : undefined;
  frame.work((keys?.length ?? 0) / ELEMENTS_PER_WORK);
  return keys;
}

function iterateList(frame: Frame, items: readonly CelValue[], slot: number, visit: Visit): undefined {
  const { slots } = frame;
  for (let index = 0; index < items.length; index++) {
    slots[slot] = items[index] ?? null;
    if (!visit(frame)) {
      return;
    }
    frame.work(1);
    frame.checkBudget();
  }
}

function iteratePairs(
  frame: Frame,
  items: CelResult,
  { id, slot, secondSlot }: { readonly id: number; readonly slot: number; readonly secondSlot: number },
  visit: Visit,
): EvaluationFailure | undefined {
  if (items instanceof EvaluationFailure) {
    return items;
  }
  const keys = isList(items) ? undefined : keysOfRange(frame, items);
  if (!isList(items) && keys === undefined) {
    return new EvaluationFailure(`unsupported comprehension range type: ${goTypeOf(items)}`, id);
  }
  const { slots } = frame;
  const length = isList(items) ? items.length : (keys?.length ?? 0);
  for (let index = 0; index < length; index++) {
    const key = keys?.[index] ?? index;
    slots[slot] = key;
    slots[secondSlot] = isList(items) ? (items[index] ?? null) : valueAt(items, key);
    if (!visit(frame)) {
      return undefined;
    }
    frame.work(1);
    frame.checkBudget();
  }
  return undefined;
}

function valueAt(range: CelValue, key: CelValue): CelResult {
  if (range instanceof CelStruct) {
    return (typeof key === 'string' ? range.get(key) : undefined) ?? null;
  }
  return findInMap(range as CelRecord | CelMap, key) ?? null;
}

/** The differences between `all` and `exists`. */
interface Quantifier {
  /** The result that ends the loop; the initial result is the other one. */
  readonly end: boolean;
  /** Cost of the loop condition: `@not_strictly_false(@result)` or `@not_strictly_false(!@result)`. */
  readonly conditionCost: number;
}

export const ALL: Quantifier = { end: false, conditionCost: 2 };
export const EXISTS: Quantifier = { end: true, conditionCost: 3 };

/**
 * `all` and `exists`: condition, step `@result && predicate` or `@result || predicate` (1), result (1). The loop over a
 * list with one variable is inlined, because most policies use it.
 */
export function compileQuantifier(iteration: Iteration, predicate: Run, quantifier: Quantifier): Run {
  const { range, slot, secondSlot } = iteration;
  const { end, conditionCost } = quantifier;
  const neutral = !end;
  const stepCost = conditionCost + 1;
  return (frame) => {
    const items = range(frame);
    if (!isList(items) || secondSlot !== undefined) {
      return quantify(frame, { ...iteration, range: () => items }, predicate, quantifier);
    }
    const { slots } = frame;
    let result: CelResult = neutral;
    for (let index = 0; index < items.length; index++) {
      if (result === end) {
        frame.cost += conditionCost;
        break;
      }
      frame.cost += stepCost;
      slots[slot] = items[index] ?? null;
      const holds = predicate(frame);
      if (holds !== neutral) {
        result = join(result, holds, end);
      }
      frame.work(1);
      frame.checkBudget();
    }
    frame.cost += LOOKUP_COST;
    return result;
  };
}

/** `result && holds` when false ends the loop, `result || holds` when true does. */
function join(result: CelResult, holds: CelResult, end: boolean): CelResult {
  if (holds === end) {
    return end;
  }
  return result === !end && holds !== !end ? failureOf(holds) : result;
}

/** `all` and `exists` over any range. */
function quantify(frame: Frame, iteration: Iteration, predicate: Run, { end, conditionCost }: Quantifier): CelResult {
  let result: CelResult = !end;
  const failure = iterate(frame, iteration, () => {
    frame.cost += conditionCost;
    if (result === end) {
      return false;
    }
    frame.cost += 1;
    result = join(result, predicate(frame), end);
    return true;
  });
  if (failure !== undefined) {
    return failure;
  }
  frame.cost += LOOKUP_COST;
  return result;
}

/** `exists_one`: step `predicate ? @result + 1 : @result` (2 when it holds), result `@result == 1` (2). */
export function compileExistsOne(iteration: Iteration, predicate: Run): Run {
  return (frame) => {
    let count = 0;
    let failed: EvaluationFailure | undefined;
    const failure = iterate(frame, iteration, () => {
      const holds = predicate(frame);
      if (holds === true) {
        frame.cost += LOOKUP_COST + CALL_COST;
        count += 1;
      } else if (holds !== false) {
        failed = failureOf(holds);
      }
      return true;
    });
    if (failure !== undefined) {
      return failure;
    }
    frame.cost += LOOKUP_COST + CALL_COST;
    return failed ?? count === 1;
  };
}

/** The elements that a loop collects. */
interface CollectLoop {
  /** Which elements are included; undefined: all. */
  readonly filter: Run | undefined;
  readonly element: Run;
  /** Whether the element is a literal, whose list costs nothing. */
  readonly isLiteral: boolean;
}

/**
 * `map`, `filter` and `transformList`: step `@result + [element]`, optionally with a filter. After a failure, the loop
 * continues at the same cost, as in API servers.
 */
export function compileCollect(iteration: Iteration, { filter, element, isLiteral }: CollectLoop): Run {
  const appendCost = LOOKUP_COST + (isLiteral ? 0 : LIST_COST) + CALL_COST;
  return (frame) => {
    const collected: CelValue[] = [];
    let failed: EvaluationFailure | undefined;
    const failure = iterate(frame, iteration, () => {
      if (filter !== undefined) {
        const counts = filter(frame);
        if (counts !== true) {
          failed = counts === false ? failed : failureOf(counts);
          return true;
        }
      }
      const value = element(frame);
      frame.cost += appendCost;
      if (value instanceof EvaluationFailure) {
        failed ??= value;
      } else {
        collected.push(value);
      }
      return true;
    });
    if (failure !== undefined) {
      return failure;
    }
    frame.cost += LOOKUP_COST;
    return failed ?? collected;
  };
}

interface InsertLoop {
  readonly filter: Run | undefined;
  /** The value for the key in the first variable; undefined: `entries` has both. */
  readonly value: Run | undefined;
  readonly entries: Run | undefined;
}

/** `transformMap` and `transformMapEntry`: step `cel.@mapInsert(@result, key, value)` or `cel.@mapInsert(@result, map)`. */
export function compileInsert(iteration: Iteration, { filter, value, entries }: InsertLoop): Run {
  const insert = value === undefined ? insertEntries(entries) : insertValue(iteration.slot, value);
  return (frame) => {
    const builder = new MapBuilder();
    let failed: EvaluationFailure | undefined;
    const failure = iterate(frame, iteration, () => {
      if (filter !== undefined) {
        const counts = filter(frame);
        if (counts !== true) {
          failed = counts === false ? failed : failureOf(counts);
          return true;
        }
      }
      failed = insert(frame, builder, failed);
      return true;
    });
    if (failure !== undefined) {
      return failure;
    }
    frame.cost += LOOKUP_COST;
    return failed ?? builder.build();
  };
}

type Insert = (frame: Frame, into: MapBuilder, failed: EvaluationFailure | undefined) => EvaluationFailure | undefined;

/** A call with three arguments: it stops at the first failure, and then costs nothing. */
function insertValue(slot: number, value: Run): Insert {
  return (frame, into, failed) => {
    frame.cost += LOOKUP_COST;
    if (failed !== undefined) {
      return failed;
    }
    frame.cost += LOOKUP_COST;
    const key = frame.slots[slot] ?? null;
    const result = value(frame);
    frame.cost += CALL_COST;
    if (result instanceof EvaluationFailure) {
      return result;
    }
    return key instanceof EvaluationFailure ? key : insertInto(into, key, result);
  };
}

function insertEntries(entries: Run | undefined): Insert {
  return (frame, into, failed) => {
    const result = entries?.(frame) ?? null;
    frame.cost += LOOKUP_COST + CALL_COST;
    if (failed !== undefined || result instanceof EvaluationFailure) {
      return failed ?? failureOf(result);
    }
    if (!isMap(result)) {
      return failureOf(result);
    }
    for (const key of keysOf(result)) {
      const failure = insertInto(into, key, findInMap(result, key) ?? null);
      if (failure !== undefined) {
        return failure;
      }
    }
    return undefined;
  };
}

/** Any other loop. The accumulator is initialized on first use. */
interface GeneralLoop {
  readonly iteration: Iteration;
  readonly accumulatorSlot: number;
  readonly condition: Run;
  readonly step: Run;
  readonly result: Run;
}

export function compileLoop({ iteration, accumulatorSlot, condition, step, result }: GeneralLoop): Run {
  return (frame) => {
    frame.slots[accumulatorSlot] = undefined;
    const failure = iterate(frame, iteration, () => {
      if (condition(frame) === false) {
        return false;
      }
      frame.slots[accumulatorSlot] = step(frame);
      return true;
    });
    return failure ?? result(frame);
  };
}
