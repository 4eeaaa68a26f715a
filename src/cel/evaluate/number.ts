import { CelDouble, CelUint } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';

/** Range of int. */
export const MIN_INT = -(2n ** 63n);
export const MAX_INT = 2n ** 63n - 1n;
/** Maximum of uint. */
export const MAX_UINT = 2n ** 64n - 1n;

const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** An int in its representation: a number if it is safe. The value must be within 64 bits. */
export function toInt(value: bigint): number | bigint {
  return value <= MAX_SAFE && value >= -MAX_SAFE ? Number(value) : value;
}

/** A double in its representation: boxed if it could be an int. */
export function doubleOf(value: number): number | CelDouble {
  return Number.isInteger(value) ? new CelDouble(value) : value;
}

export function isInt(value: CelValue): value is number | bigint {
  return typeof value === 'number' ? Number.isInteger(value) : typeof value === 'bigint';
}

/** The number of a double; undefined for other values. */
export function doubleValue(value: CelValue): number | undefined {
  if (typeof value === 'number') {
    return Number.isInteger(value) ? undefined : value;
  }
  return value instanceof CelDouble ? value.value : undefined;
}

export function isNumeric(value: CelValue): value is number | bigint | CelDouble | CelUint {
  return (
    typeof value === 'number' || typeof value === 'bigint' || value instanceof CelDouble || value instanceof CelUint
  );
}

/**
 * Compares numbers of all types by value; undefined if one is NaN. Integers are rounded for comparisons with doubles,
 * as in API servers.
 */
export function compareNumbers(
  a: number | bigint | CelDouble | CelUint,
  b: number | bigint | CelDouble | CelUint,
): -1 | 0 | 1 | undefined {
  if (typeof a === 'number' && typeof b === 'number') {
    return order(a, b);
  }
  const left = a instanceof CelUint || a instanceof CelDouble ? a.value : a;
  const right = b instanceof CelUint || b instanceof CelDouble ? b.value : b;
  const isExact = doubleValue(a) === undefined && doubleValue(b) === undefined;
  return isExact ? order(left, right) : order(Number(left), Number(right));
}

function order(a: number | bigint, b: number | bigint): -1 | 0 | 1 | undefined {
  if (a < b) {
    return -1;
  }
  if (a > b) {
    return 1;
  }
  // oxlint-disable-next-line eqeqeq -- the only comparison of a number with a bigint by value
  return a == b ? 0 : undefined;
}
