import { CelMap, CelObject } from '../model/value.ts';
import type { CelValue, WorkMeter } from '../model/value.ts';
import { findInMap, keysOf, mapSize } from './map.ts';
import { compareNumbers, isNumeric } from './number.ts';
import { isMap } from './type-name.ts';

/** Characters per unit of work: string comparison is native. */
const CHARACTERS_PER_WORK = 64;
/** Contained values per unit of work: most comparisons find a difference early. */
const CONTENTS_PER_WORK = 4;

/**
 * `a == b`: numbers are compared by value across types, lists and maps by contents; values of other different types are
 * unequal. Not recursive, so values may be nested to any depth.
 */
export function equalValues(a: CelValue, b: CelValue, meter?: WorkMeter): boolean {
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    return equalObjects(a, b, meter);
  }
  return equalScalars(a, b, meter);
}

function equalScalars(a: CelValue, b: CelValue, meter?: WorkMeter): boolean {
  if (typeof a === 'string' && typeof b === 'string' && a.length === b.length && a.length > CHARACTERS_PER_WORK) {
    meter?.work(a.length / CHARACTERS_PER_WORK);
  }
  return a === b ? true : isNumeric(a) && isNumeric(b) && compareNumbers(a, b) === 0;
}

function equalObjects(a: CelValue, b: CelValue, meter: WorkMeter | undefined): boolean {
  // Pairs to compare. All must be equal, so their order does not matter.
  const pending: CelValue[] = [a, b];
  while (pending.length > 0) {
    const right = pending.pop() ?? null;
    const left = pending.pop() ?? null;
    meter?.work(1 + contentSize(left) / CONTENTS_PER_WORK);
    if (!equalShallow(left, right, { pending, meter })) {
      return false;
    }
  }
  return true;
}

/** Approximate number of values in a value. */
function contentSize(value: CelValue): number {
  if (Array.isArray(value)) {
    return value.length;
  }
  return isMap(value) ? mapSize(value) : 0;
}

interface Comparison {
  /** Pairs to compare. */
  readonly pending: CelValue[];
  readonly meter: WorkMeter | undefined;
}

/** Compares two contained values: scalars at once, containers later. */
function isEqualOrPending(a: CelValue, b: CelValue, { pending, meter }: Comparison): boolean {
  if (typeof a === 'object' && a !== null && typeof b === 'object' && b !== null) {
    pending.push(a, b);
    return true;
  }
  return equalScalars(a, b, meter);
}

/** Compares two values, but only schedules the contents of lists and maps. */
function equalShallow(a: CelValue, b: CelValue, comparison: Comparison): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return equalScalars(a, b);
  }
  if (a instanceof CelObject) {
    return a.equals(b, comparison.meter);
  }
  if (Array.isArray(a)) {
    return Array.isArray(b) && equalLists(a, b, comparison);
  }
  if (a instanceof Uint8Array) {
    return b instanceof Uint8Array && Buffer.compare(a, b) === 0;
  }
  return isMap(a) ? isMap(b) && equalMaps(a, b, comparison) : equalScalars(a, b);
}

function equalLists(a: readonly CelValue[], b: readonly CelValue[], comparison: Comparison): boolean {
  if (a.length !== b.length) {
    return false;
  }
  for (let index = 0; index < a.length; index++) {
    if (!isEqualOrPending(a[index] ?? null, b[index] ?? null, comparison)) {
      return false;
    }
  }
  return true;
}

function equalMaps(
  a: Parameters<typeof mapSize>[0],
  b: Parameters<typeof mapSize>[0],
  comparison: Comparison,
): boolean {
  if (mapSize(a) !== mapSize(b)) {
    return false;
  }
  if (a instanceof CelMap) {
    for (const [key, value] of a.entries.values()) {
      const found = findInMap(b, key);
      if (found === undefined || !isEqualOrPending(value, found, comparison)) {
        return false;
      }
    }
    return true;
  }
  for (const key of keysOf(a)) {
    const found = findInMap(b, key);
    if (found === undefined || !isEqualOrPending(findInMap(a, key) ?? null, found, comparison)) {
      return false;
    }
  }
  return true;
}
