import { compareStrings } from '../../go/index.ts';
import { EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { compareNumbers, isNumeric } from './number.ts';
import { CelDuration, CelTimestamp } from './time.ts';

/** Whether the type of a value has an order. */
export function isOrdered(value: CelValue): boolean {
  return (
    typeof value === 'string' ||
    typeof value === 'boolean' ||
    isNumeric(value) ||
    value instanceof Uint8Array ||
    value instanceof CelTimestamp ||
    value instanceof CelDuration
  );
}

/** Compares two values; a failure if they have no order (different types, or NaN). */
export function compareValues(a: CelValue, b: CelValue): -1 | 0 | 1 | EvaluationFailure {
  if (typeof a === 'string' && typeof b === 'string') {
    return sign(compareStrings(a, b));
  }
  if (isNumeric(a) && isNumeric(b)) {
    return compareNumbers(a, b) ?? new EvaluationFailure('NaN values cannot be ordered');
  }
  if (typeof a === 'boolean' && typeof b === 'boolean') {
    return sign(Number(a) - Number(b));
  }
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    return sign(Buffer.compare(a, b));
  }
  if (a instanceof CelTimestamp && b instanceof CelTimestamp) {
    return sign(a.seconds - b.seconds || a.nanos - b.nanos);
  }
  if (a instanceof CelDuration && b instanceof CelDuration) {
    return a.nanoseconds < b.nanoseconds ? -1 : sign(Number(a.nanoseconds > b.nanoseconds));
  }
  return new EvaluationFailure(NO_SUCH_OVERLOAD);
}

function sign(difference: number): -1 | 0 | 1 {
  if (difference === 0) {
    return 0;
  }
  return difference < 0 ? -1 : 1;
}
