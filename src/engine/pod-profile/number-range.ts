import { shortened } from '../../values/index.ts';
import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { readMappings } from './read-list.ts';

/** Ids or ports, both ends included. */
export interface NumberRange {
  readonly min: number;
  readonly max: number;
}

/** Longest list of ranges in a message: about ten ranges. */
const MAX_RANGES_TEXT = 200;

export function isWithin(ranges: readonly NumberRange[], number: number): boolean {
  return ranges.some(({ min, max }) => number >= min && number <= max);
}

/** `1000`, `1000-1999 or 5000`. */
export function rangesText(ranges: readonly NumberRange[]): string {
  const texts = ranges.map(({ min, max }) => (min === max ? String(min) : `${min}-${max}`));
  return shortened(texts.join(' or '), MAX_RANGES_TEXT);
}

/** A list of `{min, max}`, with numbers from 0 to `largest`. */
export function readRanges(fields: FieldReader, key: string, largest: number): readonly NumberRange[] {
  return (readMappings(fields, key, ['min', 'max']) ?? []).map((range) => {
    const [min, max] = [readNumber(range, 'min', largest), readNumber(range, 'max', largest)];
    if (min !== undefined && max !== undefined && min > max) {
      range.faultHere(`expected min to be at most max, got ${min} and ${max}`);
    }
    return { min: min ?? 0, max: max ?? 0 };
  });
}

function readNumber(fields: FieldReader, key: string, largest: number): number | undefined {
  const number = fields.value(key);
  if (!isNumberTo(largest, number)) {
    fields.fault(key, `expected a whole number from 0 to ${largest}, got ${describeValue(number)}`);
    return undefined;
  }
  return number;
}

export function isNumberTo(largest: number, value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= largest;
}
