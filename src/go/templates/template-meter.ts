import { TemplateError } from './errors.ts';
import type { GoValue } from '../value.ts';
import { isGoList, isGoObject } from '../value.ts';

/** Limits the execution of a template. Both are called before the work is done, and throw to end it. */
export interface TemplateMeter {
  /** One step is a node, an item of a range, or what {@link stepsToRead} counts. Takes well below a microsecond. */
  readonly steps: (count: number) => void;
  /** Characters of text: of the result, and of what functions make on the way. */
  readonly chars: (count: number) => void;
}

/** A meter that knows what it was called with. */
export interface LimitedMeter extends TemplateMeter {
  /** Characters so far. */
  readonly made: number;
}

/** Characters, or keys of a map, that a function reads in the time of a step. Rounded down. */
const CHARS_PER_STEP = 64;
const KEYS_PER_STEP = 4;

/** Steps for reading an operand, in addition to the step of the call. */
export function stepsToRead(value: GoValue): number {
  if (typeof value === 'string') {
    return value.length / CHARS_PER_STEP;
  }
  return isGoObject(value) ? Object.keys(value).length / KEYS_PER_STEP : 0;
}

/** Deepest value that may be read as a whole; Kubernetes objects have less than 100 levels. */
const MAX_VALUE_DEPTH = 1000;

/**
 * Charges for reading all of a value, before it is read: functions can make values that contain a value many times, or
 * themselves.
 * @throws TemplateError `template-limit`, also from the meter
 */
export function chargeValue(value: GoValue, meter: Pick<TemplateMeter, 'steps'>, depth = 0): void {
  if (!isGoList(value) && !isGoObject(value)) {
    // A text by itself is charged by its characters.
    meter.steps(depth === 0 ? 0 : stepsToRead(value));
    return;
  }
  if (depth > MAX_VALUE_DEPTH) {
    throw new TemplateError('template-limit', `a value is nested deeper than ${MAX_VALUE_DEPTH} levels`);
  }
  const items = isGoList(value) ? value : Object.values(value);
  meter.steps(items.length);
  items.forEach((item) => chargeValue(item, meter, depth + 1));
}

/** @throws TemplateError `template-limit`, from the meter, beyond so many steps or characters */
export function limitedMeter(maxSteps: number, maxChars: number): LimitedMeter {
  const chars = countdown(maxChars, 'characters');
  let made = 0;
  return {
    steps: countdown(maxSteps, 'steps'),
    chars: (count) => {
      made += count;
      chars(count);
    },
    get made() {
      return made;
    },
  };
}

function countdown(limit: number, unit: string): (count: number) => void {
  let left = limit;
  return (count) => {
    left -= count;
    if (left < 0) {
      throw new TemplateError('template-limit', `the template exceeds ${limit} ${unit}`);
    }
  };
}
