import { equalValues } from '../evaluate/index.ts';
import type { WorkMeter } from '../model/value.ts';
import { CelUint, CelDouble } from '../model/value.ts';
import type { CelValue, EvaluationFailure } from '../model/value.ts';
import { fail } from './declare.ts';
import { MAX_COMPARISONS } from './limits.ts';

class WorkExceeded extends Error {}

/** Aborts a comparison of values that exceeds the work limit of a call. */
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

/** Runs a function whose comparisons share one limit. */
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

/** The identity of a scalar for lookups; undefined for values that must be compared. */
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
      // Beyond the safe integers, a double equals several ints, so it has no key.
      return value instanceof CelDouble && Number.isSafeInteger(value.value) ? value.value + 0 : undefined;
  }
}

function exactInteger(value: bigint): unknown {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : undefined;
}

/** A set of values: scalars are looked up by key, others by comparison. */
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
      // NaN equals nothing, not even itself.
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
