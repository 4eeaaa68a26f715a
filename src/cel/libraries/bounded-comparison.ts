import { equalValues } from '../evaluate/index.ts';
import type { WorkMeter } from '../value.ts';
import { CelUint, CelDouble } from '../value.ts';
import type { CelValue, EvaluationFailure } from '../value.ts';
import { fail } from './declare.ts';
import { MAX_COMPARISONS } from './limits.ts';

class WorkExceeded extends Error {}

/** Ends a comparison of values that took more work than a call may. */
class BoundedMeter implements WorkMeter {
  #left = MAX_COMPARISONS;

  work(units: number): void {
    this.#left -= units;
    if (this.#left < 0) {
      throw new WorkExceeded('too many comparisons');
    }
  }
}

type Equality = (a: CelValue, b: CelValue) => boolean;

/** Runs what compares values with a bound on all comparisons together. */
export function withBoundedEquality<T>(run: (isEqual: Equality) => T): T | EvaluationFailure {
  const meter = new BoundedMeter();
  try {
    return run((a, b) => {
      meter.work(1);
      return equalValues(a, b, meter);
    });
  } catch (error) {
    if (error instanceof WorkExceeded) {
      return fail(`comparing takes too long: expected at most ${MAX_COMPARISONS} comparisons`);
    }
    throw error;
  }
}

/** What tells scalars apart that are equal to no others; undefined for values that must be compared. */
function scalarKey(value: CelValue): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return value;
    case 'number':
      return value;
    case 'bigint':
      return exactInteger(value);
    default:
      if (value === null) {
        return null;
      }
      if (value instanceof CelUint) {
        return exactInteger(value.value);
      }
      // Beyond the safe integers doubles equal several ints: they have no key.
      return value instanceof CelDouble && Number.isSafeInteger(value.value) ? value.value + 0 : undefined;
  }
}

function exactInteger(value: bigint): unknown {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : undefined;
}

/** Values to look others up in: scalars at once, others one after the other. */
export class ValueSet {
  readonly #isEqual: Equality;
  readonly #keys = new Set<unknown>();
  readonly #others: CelValue[] = [];

  constructor(isEqual: Equality, values: readonly CelValue[] = []) {
    this.#isEqual = isEqual;
    for (const value of values) {
      this.add(value);
    }
  }

  has(value: CelValue): boolean {
    const key = scalarKey(value);
    if (key !== undefined) {
      // NaN equals nothing, itself included.
      return this.#keys.has(key) && !Number.isNaN(key);
    }
    return this.#others.some((other) => this.#isEqual(value, other));
  }

  add(value: CelValue): void {
    const key = scalarKey(value);
    if (key === undefined) {
      this.#others.push(value);
    } else {
      this.#keys.add(key);
    }
  }
}
