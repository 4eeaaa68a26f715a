import { compareStrings } from './compare-strings.ts';
import { formatFloat } from './float.ts';

/** 2⁶³: smaller integers are int64 in Kubernetes' decoded JSON (`unstructured.Unstructured`), all others float64. */
const INT64_BOUND = 2 ** 63;

/** Whether a number of decoded JSON is an int64 to Kubernetes; all others are float64. */
export function isIntegerNumber(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) < INT64_BOUND;
}

/** A number of decoded JSON as `%v` prints it: `1000000`, `1.2345675e+06`. */
export function numberText(value: number): string {
  return isIntegerNumber(value) ? String(value) : formatFloat(value, 'g');
}

/** Deeper parts of a value are printed as `...`, as recursion must not exhaust the stack. No Kubernetes object has more levels than 100. */
const MAX_DEPTH = 1000;

/** A value of decoded JSON. */
export type PrintedValue =
  | null
  | boolean
  | number
  | string
  | readonly PrintedValue[]
  | { readonly [key: string]: PrintedValue };

/** A value of decoded JSON as `%v` prints it: `map[a:1 b:[x y]]`. */
export function valueText(value: PrintedValue, depth = 0): string {
  if (value === null) {
    return '<nil>';
  }
  if (typeof value === 'number') {
    return numberText(value);
  }
  if (typeof value !== 'object') {
    return String(value);
  }
  if (depth > MAX_DEPTH) {
    return '...';
  }
  if (isList(value)) {
    return `[${value.map((item) => valueText(item, depth + 1)).join(' ')}]`;
  }
  const entries = Object.entries(value).toSorted(([a], [b]) => compareStrings(a, b));
  return `map[${entries.map(([key, item]) => `${key}:${valueText(item, depth + 1)}`).join(' ')}]`;
}

function isList(value: PrintedValue): value is readonly PrintedValue[] {
  return Array.isArray(value);
}
