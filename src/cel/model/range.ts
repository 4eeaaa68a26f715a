import type { Range } from './library.ts';

/**
 * Arithmetic of size and cost bounds as in API servers: unsigned 64-bit integers that saturate at their maximum, which
 * is Infinity here.
 */

/** The maximum of the API server's integers, plus one. */
const LIMIT = 2 ** 64;

export const UNKNOWN_RANGE: Range = { min: 0, max: Infinity };

export function exactly(value: number): Range {
  return { min: value, max: value };
}

export function addRanges(...ranges: readonly Range[]): Range {
  let min = 0;
  let max = 0;
  for (const range of ranges) {
    min = clamp(min + range.min);
    max = clamp(max + range.max);
  }
  return { min, max };
}

export function multiplyRanges(left: Range, right: Range): Range {
  return { min: multiply(left.min, right.min), max: multiply(left.max, right.max) };
}

/** Multiplies both bounds by `factor` and rounds up. */
export function scaleRange(range: Range, factor: number): Range {
  return { min: Math.ceil(multiply(range.min, factor)), max: Math.ceil(multiply(range.max, factor)) };
}

/** The smallest range that contains both. */
export function uniteRanges(left: Range, right: Range): Range {
  return { min: Math.min(left.min, right.min), max: Math.max(left.max, right.max) };
}

function multiply(left: number, right: number): number {
  return left === 0 || right === 0 ? 0 : clamp(left * right);
}

function clamp(value: number): number {
  return value >= LIMIT ? Infinity : value;
}
