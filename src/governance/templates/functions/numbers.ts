import { GoFloat } from '../../../go/index.ts';
import { failTemplate } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import { castFloat, castInt, textOperand } from '../rendering/operands.ts';
import { counted } from '../rendering/rendering.ts';
import type { FunctionRow, GovernanceFunction } from '../rendering/rendering.ts';

/** Arithmetic of Go's int64, which wraps. */
function arithmetic(least: number, most: number, call: (a: bigint, b: bigint) => bigint): GovernanceFunction {
  return counted(least, most, (operands) => operands.map(castInt).reduce((a, b) => BigInt.asIntN(64, call(a, b))));
}

function divisor(value: bigint): bigint {
  return value === 0n ? failTemplate('division by zero') : value;
}

/** Most decimal places of `round`: float64 has fewer. */
const MAX_PLACES = 20;

function rounded([value, places, threshold]: readonly GoValue[]): GoValue {
  const number = castFloat(value);
  const scale = 10 ** Math.min(Number(castInt(places)), MAX_PLACES);
  const digit = number * scale;
  // As in Sprig, numbers below zero are always rounded down.
  const roundsUp = digit % 1 >= (threshold === undefined ? 0.5 : castFloat(threshold));
  return new GoFloat((roundsUp ? Math.ceil(digit) : Math.floor(digit)) / scale);
}

const TRUE_TEXTS: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);

/** strconv.Atoi: decimal digits only, 0 for other texts. */
function atoi(text: string): bigint {
  return /^[+-]?\d{1,25}$/.test(text) ? castInt(text.replace(/^([+-]?)0+(?=\d)/, '$1')) : 0n;
}

export const NUMBER_FUNCTIONS: readonly FunctionRow[] = [
  ['add', arithmetic(1, Infinity, (a, b) => a + b)],
  ['add1', counted(1, 1, ([value]) => BigInt.asIntN(64, castInt(value) + 1n))],
  ['sub', arithmetic(2, 2, (a, b) => a - b)],
  ['mul', arithmetic(1, Infinity, (a, b) => a * b)],
  ['div', arithmetic(2, 2, (a, b) => a / divisor(b))],
  ['mod', arithmetic(2, 2, (a, b) => a % divisor(b))],
  ['ceil', counted(1, 1, ([value]) => new GoFloat(Math.ceil(castFloat(value))))],
  ['floor', counted(1, 1, ([value]) => new GoFloat(Math.floor(castFloat(value))))],
  ['round', counted(2, 3, rounded)],
  ['int', counted(1, 1, ([value]) => castInt(value))],
  ['int64', counted(1, 1, ([value]) => castInt(value))],
  ['float64', counted(1, 1, ([value]) => new GoFloat(castFloat(value)))],
  ['atoi', counted(1, 1, (operands) => atoi(textOperand(operands, 0)))],
  ['toInt', counted(1, 1, ([value]) => castInt(value))],
  ['toBool', counted(1, 1, (operands) => TRUE_TEXTS.has(textOperand(operands, 0)))],
  [
    'toLiteral',
    counted(1, 1, (operands) => {
      const text = textOperand(operands, 0);
      return text.includes('\n') ? failTemplate('toLiteral: newlines are not allowed') : text;
    }),
  ],
];
