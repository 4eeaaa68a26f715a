import { compareStrings, isGoList, valueText } from '../../../go/index.ts';
import { failTemplate, isTrue } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import { boundedList, checkLength } from '../rendering/bounded-list.ts';
import { deepEqual } from '../rendering/deep-equal.ts';
import { castInt, intOperand, listOperand } from '../rendering/operands.ts';
import { counted, withMust } from '../rendering/rendering.ts';
import type { FunctionRow, GovernanceFunction, Rendering } from '../rendering/rendering.ts';
import { chargeTexts } from '../rendering/value-conversion.ts';

/** A function from a list to a list. */
function mapping(map: (list: readonly GoValue[]) => readonly GoValue[]): GovernanceFunction {
  return counted(1, 1, (operands, rendering) => boundedList(map(listOperand(operands, 0)), rendering));
}

function includes(list: readonly GoValue[], value: GoValue, rendering: Rendering): boolean {
  return list.some((item) => deepEqual(item, value, rendering.meter));
}

function unique(list: readonly GoValue[], rendering: Rendering): readonly GoValue[] {
  const kept: GoValue[] = [];
  for (const item of list) {
    if (!includes(kept, item, rendering)) {
      kept.push(item);
    }
  }
  return kept;
}

/** The texts of the items, in the order of their bytes. */
function sorted(value: GoValue, rendering: Rendering): readonly GoValue[] {
  chargeTexts(value, rendering.meter);
  const items = isGoList(value) ? value : [value];
  const texts = items.filter((item) => item !== null && item !== undefined).map((item) => valueText(item));
  return boundedList(texts.toSorted(compareStrings), rendering);
}

function steps(start: number, stop: number, step: number, rendering: Rendering): readonly bigint[] {
  if (step === 0 || (stop - start) * step < 0) {
    return [];
  }
  const length = Math.ceil((stop - start) / step);
  checkLength(length);
  return boundedList(
    Array.from({ length }, (_, index) => BigInt(start + index * step)),
    rendering,
  );
}

/** `seq end`, `seq start end`, `seq start step end`: a text of numbers, the end included. */
function sequence(operands: readonly GoValue[], rendering: Rendering): string {
  if (operands.length === 0) {
    return '';
  }
  const numbers = operands.map((_, index) => intOperand(operands, index));
  const end = numbers.at(-1) ?? 0;
  const start = numbers.length > 1 ? (numbers[0] ?? 1) : 1;
  const step = numbers.length > 2 ? (numbers[1] ?? 1) : start <= end ? 1 : -1;
  return steps(start, end + Math.sign(step), step, rendering).join(' ');
}

/** `slice list`, `slice list start`, `slice list start end`; of texts as well, as Go's own. */
function sliced(operands: readonly GoValue[], rendering: Rendering): GoValue {
  const [value] = operands;
  const bytes = typeof value === 'string' ? Buffer.from(value) : undefined;
  const list = bytes ?? listOperand(operands, 0);
  const start = operands.length > 1 ? intOperand(operands, 1) : 0;
  const end = operands.length > 2 ? intOperand(operands, 2) : list.length;
  if (start < 0 || end < start || end > list.length) {
    failTemplate('slice out of range');
  }
  return bytes === undefined
    ? boundedList(listOperand(operands, 0).slice(start, end), rendering)
    : bytes.subarray(start, end).toString();
}

function chunks(size: number, list: readonly GoValue[]): readonly GoValue[] {
  if (size < 1) {
    failTemplate('chunk: the size must be positive');
  }
  return Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );
}

const appended: GovernanceFunction = counted(2, 2, (operands, rendering) =>
  boundedList([...listOperand(operands, 0), operands[1]], rendering),
);

const MUST_ROWS: readonly FunctionRow[] = [
  ['first', counted(1, 1, (operands) => listOperand(operands, 0)[0] ?? null)],
  ['last', counted(1, 1, (operands) => listOperand(operands, 0).at(-1) ?? null)],
  ['rest', mapping((list) => list.slice(1))],
  ['initial', mapping((list) => list.slice(0, -1))],
  ['append', appended],
  ['push', appended],
  [
    'prepend',
    counted(2, 2, (operands, rendering) => boundedList([operands[1], ...listOperand(operands, 0)], rendering)),
  ],
  ['reverse', mapping((list) => list.toReversed())],
  ['compact', mapping((list) => list.filter((item) => isTrue(item)))],
  ['uniq', counted(1, 1, (operands, rendering) => boundedList(unique(listOperand(operands, 0), rendering), rendering))],
  [
    'without',
    counted(1, Infinity, (operands, rendering) =>
      boundedList(
        listOperand(operands, 0).filter((item) => !includes(operands.slice(1), item, rendering)),
        rendering,
      ),
    ),
  ],
  [
    'has',
    counted(2, 2, (operands, rendering) =>
      operands[1] === undefined || operands[1] === null
        ? false
        : includes(listOperand(operands, 1), operands[0], rendering),
    ),
  ],
  ['slice', counted(1, 3, sliced)],
  [
    'chunk',
    counted(2, 2, (operands, rendering) =>
      boundedList(chunks(intOperand(operands, 0), listOperand(operands, 1)), rendering),
    ),
  ],
];

export const LIST_FUNCTIONS: readonly FunctionRow[] = [
  ...withMust(MUST_ROWS),
  ['list', counted(0, Infinity, (operands, rendering) => boundedList([...operands], rendering))],
  ['tuple', counted(0, Infinity, (operands, rendering) => boundedList([...operands], rendering))],
  [
    'concat',
    counted(0, Infinity, (operands, rendering) => {
      const lists = operands.map((_, index) => listOperand(operands, index));
      checkLength(lists.reduce((sum, list) => sum + list.length, 0));
      return boundedList(lists.flat(), rendering);
    }),
  ],
  ['sortAlpha', counted(1, 1, ([value], rendering) => sorted(value, rendering))],
  [
    'until',
    counted(1, 1, (operands, rendering) => {
      const stop = intOperand(operands, 0);
      return steps(0, stop, stop < 0 ? -1 : 1, rendering);
    }),
  ],
  [
    'untilStep',
    counted(3, 3, (operands, rendering) =>
      steps(intOperand(operands, 0), intOperand(operands, 1), intOperand(operands, 2), rendering),
    ),
  ],
  ['seq', counted(0, 3, sequence)],
  ['max', counted(1, Infinity, (operands) => operands.map(castInt).reduce((a, b) => (a > b ? a : b)))],
  ['min', counted(1, Infinity, (operands) => operands.map(castInt).reduce((a, b) => (a < b ? a : b)))],
];
