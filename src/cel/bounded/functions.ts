import { codePointCount } from '../code-point-count.ts';
import { compareNumbers, compareValues, isInt, isList, isNumeric, isRecord } from '../evaluate/index.ts';
import { Operator } from '../syntax/index.ts';
import type { CelRecord, CelValue, WorkMeter } from '../value.ts';

class Beyond extends Error {}

/**
 * Ends an evaluation with a bound: it fails, or what comes next is not of the part of the language that it knows. A failure that
 * `&&` or `||` would absorb is no exception: what failing costs is known where failures have messages.
 */
export const BEYOND = new Beyond('not known within the bound');

/** A function of one or two values. */
export interface BoundedFunction {
  readonly operands: 1 | 2;
  /** Units of work of a call, told by sizes that are known without looking, before it is called: a unit is one look at a value. */
  readonly work: (a: CelValue, b: CelValue) => number;
  /** `meter`: told of every value within others that is looked at. @throws {@link BEYOND} */
  readonly call: (a: CelValue, b: CelValue, meter: WorkMeter) => CelValue;
}

/** UTF-16 units of a text that are looked at in a unit of work. */
const CHARACTERS_PER_WORK = 64;
/** Keys of a map that are listed, or elements that a list has, for a unit of work. */
const ELEMENTS_PER_WORK = 4;
/** Values that hold others nest at most so deep where they are compared. */
const MAX_COMPARED_DEPTH = 64;
/** UTF-16 units of the longest text that is made. */
const MAX_MADE_TEXT = 1_024;

/** Keys of a map. Listing them is the one step whose work is told when it is done: a map says nothing of its size before. */
export function keysOf(map: CelRecord, meter: WorkMeter): readonly string[] {
  const keys = Object.keys(map);
  meter.work(keys.length / ELEMENTS_PER_WORK);
  return keys;
}

/** The value of a key that a map has itself. */
export function fieldOf(map: CelRecord, key: string): CelValue {
  if (!Object.hasOwn(map, key)) {
    throw BEYOND;
  }
  return map[key] ?? null;
}

function ofTexts(call: (a: string, b: string) => CelValue): BoundedFunction['call'] {
  return (a, b) => {
    if (typeof a !== 'string' || typeof b !== 'string') {
      throw BEYOND;
    }
    return call(a, b);
  };
}

function ordered(holds: (order: number) => boolean): BoundedFunction {
  return ofTwo(pairWork, (a, b) => {
    const isOfTexts = typeof a === 'string' && typeof b === 'string';
    const order = isOfTexts || (isNumeric(a) && isNumeric(b)) ? compareValues(a, b) : undefined;
    if (typeof order !== 'number') {
      throw BEYOND;
    }
    return holds(order);
  });
}

function joined(a: CelValue, b: CelValue): CelValue {
  return typeof a === 'string' && typeof b === 'string' && a.length + b.length <= MAX_MADE_TEXT ? a + b : sum(a, b);
}

/** Of integers that are not large; they, doubles and lists have sums elsewhere. */
function sum(a: CelValue, b: CelValue): CelValue {
  const isOfInts = typeof a === 'number' && typeof b === 'number' && isInt(a) && isInt(b);
  if (!isOfInts || !Number.isSafeInteger(a + b)) {
    throw BEYOND;
  }
  return a + b;
}

function negated(value: CelValue): CelValue {
  return sum(0, typeof value === 'number' ? -value + 0 : null);
}

function opposite(value: CelValue): CelValue {
  if (typeof value !== 'boolean') {
    throw BEYOND;
  }
  return !value;
}

function elementOf(collection: CelValue, key: CelValue): CelValue {
  if (isRecord(collection) && typeof key === 'string') {
    return fieldOf(collection, key);
  }
  const element = isList(collection) && typeof key === 'number' ? collection[key] : undefined;
  if (element === undefined) {
    throw BEYOND;
  }
  return element;
}

function size(value: CelValue, meter: WorkMeter): CelValue {
  if (typeof value === 'string') {
    return codePointCount(value);
  }
  if (isList(value)) {
    return value.length;
  }
  if (!isRecord(value)) {
    throw BEYOND;
  }
  return keysOf(value, meter).length;
}

function isMember(element: CelValue, collection: CelValue, meter: WorkMeter): CelValue {
  if (isList(collection)) {
    return collection.some((other) => isEqual(element, other, meter));
  }
  if (!isRecord(collection)) {
    throw BEYOND;
  }
  return typeof element === 'string' && Object.hasOwn(collection, element);
}

/** As `==` has it for what JSON has: numbers by their value, lists and maps by what they hold. */
function isEqual(a: CelValue, b: CelValue, meter: WorkMeter, depth = 0): boolean {
  meter.work(1 + pairWork(a, b));
  if (depth > MAX_COMPARED_DEPTH) {
    throw BEYOND;
  }
  if (isNumeric(a) && isNumeric(b)) {
    return compareNumbers(a, b) === 0;
  }
  if (isList(a) && isList(b)) {
    return a.length === b.length && a.every((value, index) => isEqual(value, b[index] ?? null, meter, depth + 1));
  }
  if (isRecord(a) && isRecord(b)) {
    const keys = keysOf(a, meter);
    return (
      keysOf(b, meter).length === keys.length &&
      keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key] ?? null, b[key] ?? null, meter, depth + 1))
    );
  }
  return a === b;
}

/** Texts are read whole. */
function textWork(value: CelValue): number {
  return typeof value === 'string' ? value.length / CHARACTERS_PER_WORK : 0;
}

/** What looking through the smaller of two costs, whatever they hold. Two maps count their keys when these are listed. */
function pairWork(a: CelValue, b: CelValue): number {
  const least = Math.min(sizeWork(a), sizeWork(b));
  return Number.isFinite(least) ? least : 0;
}

/** Of values that have a size. That of a map is not known before its keys are listed. */
function sizeWork(value: CelValue): number {
  return isRecord(value) ? Infinity : textWork(value) + elementWork(value);
}

/** Of a list, as many as API servers count for looking for something in it, wherever it is found. */
function elementWork(value: CelValue): number {
  return isList(value) ? value.length / ELEMENTS_PER_WORK : 0;
}

/** Looking for a text within another may take as many steps as both lengths multiplied. */
function searchWork(text: CelValue, part: CelValue): number {
  return textWork(text) * (typeof part === 'string' ? 1 + part.length : 1);
}

const LITTLE = (): number => 0;

function ofOne(work: BoundedFunction['work'], call: BoundedFunction['call']): BoundedFunction {
  return { operands: 1, work, call };
}

function ofTwo(work: BoundedFunction['work'], call: BoundedFunction['call']): BoundedFunction {
  return { operands: 2, work, call };
}

/** Functions and operators that look at all their operands, by their names in the syntax tree. */
export const BOUNDED_FUNCTIONS: ReadonlyMap<string, BoundedFunction> = new Map<string, BoundedFunction>([
  [Operator.Equals, ofTwo(LITTLE, (a, b, meter) => isEqual(a, b, meter))],
  [Operator.NotEquals, ofTwo(LITTLE, (a, b, meter) => !isEqual(a, b, meter))],
  [Operator.Less, ordered((order) => order < 0)],
  [Operator.LessEquals, ordered((order) => order <= 0)],
  [Operator.Greater, ordered((order) => order > 0)],
  [Operator.GreaterEquals, ordered((order) => order >= 0)],
  [Operator.In, ofTwo((a, b) => textWork(a) + elementWork(b), isMember)],
  [Operator.Add, ofTwo((a, b) => textWork(a) + textWork(b), joined)],
  [Operator.Index, ofTwo((_collection, key) => textWork(key), elementOf)],
  [Operator.LogicalNot, ofOne(LITTLE, opposite)],
  [Operator.Negate, ofOne(LITTLE, negated)],
  ['size', ofOne(textWork, (value, _none, meter) => size(value, meter))],
  [
    'startsWith',
    ofTwo(
      textWork,
      ofTexts((text, part) => text.startsWith(part)),
    ),
  ],
  [
    'endsWith',
    ofTwo(
      textWork,
      ofTexts((text, part) => text.endsWith(part)),
    ),
  ],
  [
    'contains',
    ofTwo(
      searchWork,
      ofTexts((text, part) => text.includes(part)),
    ),
  ],
]);
