import { compareStrings, isGoList, isGoObject, valueText } from '../../../go/index.ts';
import { chargeValue, failTemplate, isTrue } from '../../../go/templates/index.ts';
import type { GoObject, GoValue } from '../../../go/index.ts';
import { setOwn } from '../../../values/index.ts';
import { boundedList } from '../rendering/bounded-list.ts';
import { objectOperand, textOperand } from '../rendering/operands.ts';
import { charged, counted, withMust } from '../rendering/rendering.ts';
import type { FunctionRow, GovernanceFunction, Rendering } from '../rendering/rendering.ts';
import { chargeTexts, objectOf } from '../rendering/value-conversion.ts';

/** The values of a rendering are copies that belong to it, so functions may change them, as Sprig's do. */
function change(object: GoObject, key: string, value: GoValue): void {
  setOwn(object as Record<string, GoValue>, key, value);
}

function own(object: GoObject, key: string): GoValue {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function keysOf(object: GoObject, { meter }: Rendering): readonly string[] {
  const keys = Object.keys(object);
  meter.steps(keys.length);
  return keys.toSorted(compareStrings);
}

/** `dict key value…`; a last key without a value has an empty text. */
function made(operands: readonly GoValue[], rendering: Rendering): GoValue {
  rendering.meter.steps(operands.length);
  const entries: [string, GoValue][] = [];
  for (let index = 0; index < operands.length; index += 2) {
    chargeTexts(operands[index], rendering.meter);
    entries.push([valueText(operands[index]), index + 1 < operands.length ? operands[index + 1] : '']);
  }
  return objectOf(entries);
}

/** The entries of a map whose keys pass. */
function filtered(isKept: (key: string, keys: ReadonlySet<GoValue>) => boolean): GovernanceFunction {
  return counted(1, Infinity, (operands, rendering) => {
    const object = objectOperand(operands, 0);
    const keys = new Set(operands.slice(1));
    return objectOf(
      keysOf(object, rendering)
        .filter((key) => isKept(key, keys))
        .map((key) => [key, own(object, key)]),
    );
  });
}

/** Deepest maps that are merged; deeper ones are kept as they are. */
const MAX_MERGE_DEPTH = 100;

/** Changes the target, as Sprig's merge: maps are merged, and other entries kept unless they are empty. */
function mergeInto(
  target: GoObject,
  source: GoObject,
  isReplaced: (known: GoValue) => boolean,
  rendering: Rendering,
  depth = 0,
): void {
  for (const key of keysOf(source, rendering)) {
    const [known, value] = [own(target, key), own(source, key)];
    if (isGoObject(known) && isGoObject(value) && depth < MAX_MERGE_DEPTH) {
      mergeInto(known, value, isReplaced, rendering, depth + 1);
    } else if (isReplaced(known)) {
      change(target, key, deepCopy(value, rendering));
    }
  }
}

function deepCopy(value: GoValue, { meter }: Rendering): GoValue {
  chargeValue(value, meter);
  return copyOf(value);
}

function copyOf(value: GoValue): GoValue {
  if (isGoList(value)) {
    return value.map(copyOf);
  }
  return isGoObject(value) ? objectOf(Object.entries(value).map(([key, item]) => [key, copyOf(item)])) : value;
}

function merging(isReplaced: (known: GoValue) => boolean): GovernanceFunction {
  return counted(1, Infinity, (operands, rendering) => {
    const target = objectOperand(operands, 0);
    for (const [index] of operands.slice(1).entries()) {
      mergeInto(target, objectOperand(operands, index + 1), isReplaced, rendering);
    }
    return target;
  });
}

/** `dig key… default map`: the value at a path, or the default. */
function dug(operands: readonly GoValue[]): GoValue {
  const keys = operands.slice(0, -2).map((_, index) => textOperand(operands, index));
  let at: GoValue = objectOperand(operands, operands.length - 1);
  for (const key of keys) {
    if (!isGoObject(at)) {
      return failTemplate(`dig: the parent of ${JSON.stringify(key)} is no map`);
    }
    if (!Object.hasOwn(at, key)) {
      return operands.at(-2);
    }
    at = own(at, key);
  }
  return at;
}

const MERGE_ROWS: readonly FunctionRow[] = [
  ['merge', merging((known) => !isTrue(known))],
  ['mergeOverwrite', merging(() => true)],
  ['deepCopy', counted(1, 1, ([value], rendering) => deepCopy(value, rendering))],
];

export const MAP_FUNCTIONS: readonly FunctionRow[] = [
  ...withMust(MERGE_ROWS),
  ['dict', charged(made)],
  ['get', counted(2, 2, (operands) => own(objectOperand(operands, 0), textOperand(operands, 1)) ?? '')],
  [
    'set',
    counted(3, 3, (operands) => {
      const object = objectOperand(operands, 0);
      change(object, textOperand(operands, 1), operands[2]);
      return object;
    }),
  ],
  [
    'unset',
    counted(2, 2, (operands) => {
      const object = objectOperand(operands, 0);
      delete (object as Record<string, GoValue>)[textOperand(operands, 1)];
      return object;
    }),
  ],
  ['hasKey', counted(2, 2, (operands) => Object.hasOwn(objectOperand(operands, 0), textOperand(operands, 1)))],
  [
    'keys',
    counted(1, Infinity, (operands, rendering) =>
      boundedList(
        operands.flatMap((_, index) => keysOf(objectOperand(operands, index), rendering)),
        rendering,
      ),
    ),
  ],
  [
    'values',
    counted(1, 1, (operands, rendering) => {
      const object = objectOperand(operands, 0);
      return boundedList(
        keysOf(object, rendering).map((key) => own(object, key)),
        rendering,
      );
    }),
  ],
  ['pick', filtered((key, keys) => keys.has(key))],
  ['omit', filtered((key, keys) => !keys.has(key))],
  ['dig', counted(3, Infinity, dug)],
  [
    'pluck',
    counted(1, Infinity, (operands, rendering) => {
      const key = textOperand(operands, 0);
      const objects = operands.slice(1).map((_, index) => objectOperand(operands, index + 1));
      return boundedList(
        objects.filter((object) => Object.hasOwn(object, key)).map((object) => own(object, key)),
        rendering,
      );
    }),
  ],
];
