import { CALL_COST } from '../library.ts';
import { EvaluationFailure } from '../value.ts';
import type { CelMap, CelRecord, CelResult, CelValue } from '../value.ts';
import { goTypeOf } from './access.ts';
import { failureOf } from './attribute.ts';
import { insertInto } from './extension-libraries.ts';
import { ELEMENTS_PER_WORK } from './frame.ts';
import type { Frame, Run } from './frame.ts';
import { MapBuilder, findInMap, keysOf } from './map.ts';
import { CelStruct } from './struct.ts';
import { isList, isMap } from './type-name.ts';

// The loops that macros expand to. Each shape has a loop of its own, which counts exactly what the expanded expression
// costs on API servers: the accumulator that is looked up (1), the list that is made (10), the call that joins (1).

/** What looking up the accumulator costs. */
const LOOKUP_COST = 1;
/** What `[element]` costs unless the element is a literal. */
const LIST_COST = 10;

/** What a loop goes over and where it puts what it finds. */
export interface Iteration {
  readonly id: number;
  readonly range: Run;
  readonly slot: number;
  /** Of the second variable. */
  readonly secondSlot: number | undefined;
}

/** What a loop does with an element; true to go on. */
type Visit = (frame: Frame) => boolean;

/**
 * Goes over a list or a map, looking at the limits for every element.
 * @returns a failure when the range is none or cannot be iterated.
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

/** The keys of a map or struct; making the list is work, however soon the loop ends. */
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

/**
 * `all`: condition `@not_strictly_false(@result)` (2), step `@result && predicate` (1), result (1). A loop over a list
 * with one variable is written out: most policies are made of it.
 */
export function compileAll(iteration: Iteration, predicate: Run): Run {
  const { range, slot, secondSlot } = iteration;
  return (frame) => {
    const items = range(frame);
    if (!isList(items) || secondSlot !== undefined) {
      return quantify(frame, { ...iteration, range: () => items }, predicate, ALL);
    }
    const { slots } = frame;
    let result: CelResult = true;
    for (let index = 0; index < items.length; index++) {
      if (result === false) {
        frame.cost += 2;
        break;
      }
      frame.cost += 3;
      slots[slot] = items[index] ?? null;
      const holds = predicate(frame);
      if (holds !== true) {
        result = and(result, holds);
      }
      frame.work(1);
      frame.checkBudget();
    }
    frame.cost += LOOKUP_COST;
    return result;
  };
}

function and(result: CelResult, holds: CelResult): CelResult {
  if (holds === false) {
    return false;
  }
  return result === true && holds !== true ? failureOf(holds) : result;
}

/** `exists`: condition `@not_strictly_false(!@result)` (3), step `@result || predicate` (1), result (1). */
export function compileExists(iteration: Iteration, predicate: Run): Run {
  const { range, slot, secondSlot } = iteration;
  return (frame) => {
    const items = range(frame);
    if (!isList(items) || secondSlot !== undefined) {
      return quantify(frame, { ...iteration, range: () => items }, predicate, EXISTS);
    }
    const { slots } = frame;
    let result: CelResult = false;
    for (let index = 0; index < items.length; index++) {
      if (result === true) {
        frame.cost += 3;
        break;
      }
      frame.cost += 4;
      slots[slot] = items[index] ?? null;
      const holds = predicate(frame);
      if (holds !== false) {
        result = or(result, holds);
      }
      frame.work(1);
      frame.checkBudget();
    }
    frame.cost += LOOKUP_COST;
    return result;
  };
}

function or(result: CelResult, holds: CelResult): CelResult {
  if (holds === true) {
    return true;
  }
  return result === false && holds !== false ? failureOf(holds) : result;
}

/** How `all` and `exists` differ. */
interface Quantifier {
  /** The result that ends the loop; it begins with the other one. */
  readonly end: boolean;
  /** What looking whether to go on costs. */
  readonly conditionCost: number;
  readonly join: (result: CelResult, holds: CelResult) => CelResult;
}

const ALL: Quantifier = { end: false, conditionCost: 2, join: and };
const EXISTS: Quantifier = { end: true, conditionCost: 3, join: or };

/** `all` and `exists` over whatever can be gone over. */
function quantify(
  frame: Frame,
  iteration: Iteration,
  predicate: Run,
  { end, conditionCost, join }: Quantifier,
): CelResult {
  let result: CelResult = !end;
  const failure = iterate(frame, iteration, () => {
    frame.cost += conditionCost;
    if (result === end) {
      return false;
    }
    frame.cost += 1;
    result = join(result, predicate(frame));
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

/** What is gathered from a loop. */
export interface Gathering {
  /** Which elements count; undefined: all. */
  readonly filter: Run | undefined;
  readonly element: Run;
  /** Whether the element is a literal: a list of it then costs nothing. */
  readonly isLiteral: boolean;
}

/**
 * `map`, `filter` and `transformList`: step `@result + [element]`, or the same under a condition. After a failure the
 * loop goes on, as it does on API servers, where it costs the same.
 */
export function compileGather(iteration: Iteration, { filter, element, isLiteral }: Gathering): Run {
  const appendCost = LOOKUP_COST + (isLiteral ? 0 : LIST_COST) + CALL_COST;
  return (frame) => {
    const gathered: CelValue[] = [];
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
        gathered.push(value);
      }
      return true;
    });
    if (failure !== undefined) {
      return failure;
    }
    frame.cost += LOOKUP_COST;
    return failed ?? gathered;
  };
}

export interface Inserting {
  readonly filter: Run | undefined;
  /** The value for the first variable as the key; undefined: `entries` has both. */
  readonly value: Run | undefined;
  readonly entries: Run | undefined;
}

/** `transformMap` and `transformMapEntry`: step `cel.@mapInsert(@result, key, value)` or `cel.@mapInsert(@result, map)`. */
export function compileInsert(iteration: Iteration, { filter, value, entries }: Inserting): Run {
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

/** A call with three arguments: it stops at the first that failed, and then does not cost. */
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

/** The loop of any other shape, its parts evaluated one by one. The accumulator begins when it is first looked up. */
export interface GeneralLoop {
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
