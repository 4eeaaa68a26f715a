import { GoFloat, isGoList, isGoObject, isIntegerNumber, JsonNumber, kindOf } from '../../../go/index.ts';
import { failTemplate } from '../../../go/templates/index.ts';
import type { GoObject, GoValue } from '../../../go/index.ts';

/** The operand at an index. Values are not named in messages: they may be secret. */
function fail(index: number, expected: string, value: GoValue): never {
  return failTemplate(`operand ${index + 1}: expected ${expected}, got ${kindOf(value)}`);
}

export function textOperand(operands: readonly GoValue[], index: number): string {
  const value = operands[index];
  return typeof value === 'string' ? value : fail(index, 'a string', value);
}

export function listOperand(operands: readonly GoValue[], index: number): readonly GoValue[] {
  const value = operands[index];
  return isGoList(value) ? value : fail(index, 'a list', value);
}

export function objectOperand(operands: readonly GoValue[], index: number): GoObject {
  const value = operands[index];
  return isGoObject(value) ? value : fail(index, 'a map', value);
}

export function boolOperand(operands: readonly GoValue[], index: number): boolean {
  const value = operands[index];
  return typeof value === 'boolean' ? value : fail(index, 'a bool', value);
}

/** An integer that counts or indexes. Go functions take an `int` only; all integers are accepted here. */
export function intOperand(operands: readonly GoValue[], index: number): number {
  const value = operands[index];
  if (typeof value === 'bigint') {
    return Number(value);
  }
  return typeof value === 'number' && isIntegerNumber(value) ? value : fail(index, 'an integer', value);
}

/** An integer as strconv.ParseInt reads it with base 0, without underscores. */
const INTEGER = /^([+-]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)$/;
/** Underscores stand between digits. */
const UNDERSCORE = /(?<=[\da-fA-FxXoObB])_(?=[\da-fA-F])/g;
/** More digits than an int64 has in base 2, with the prefix. */
const MAX_DIGITS = 66;

/** A value as an int64, 0 when it is none: `cast.ToInt64`. */
export function castInt(value: GoValue): bigint {
  switch (typeof value) {
    case 'bigint':
      return value;
    case 'boolean':
      return value ? 1n : 0n;
    case 'number':
      return truncated(value);
    case 'string':
      return integerOf(value.replace(/\.0*$/, ''));
    default:
      return value instanceof GoFloat
        ? truncated(value.float)
        : value instanceof JsonNumber
          ? integerOf(value.text)
          : 0n;
  }
}

function truncated(value: number): bigint {
  return Number.isFinite(value) ? BigInt.asIntN(64, BigInt(Math.trunc(value))) : 0n;
}

function integerOf(text: string): bigint {
  const [, sign, digits] = (text.length <= MAX_DIGITS ? INTEGER.exec(text.replace(UNDERSCORE, '')) : null) ?? [];
  if (digits === undefined) {
    return 0n;
  }
  const magnitude = BigInt(/^0[0-7]/.test(digits) ? `0o${digits.slice(1)}` : digits);
  const value = sign === '-' ? -magnitude : magnitude;
  return BigInt.asIntN(64, value) === value ? value : 0n;
}

/** A value as a float64, 0 when it is none: `cast.ToFloat64`. */
export function castFloat(value: GoValue): number {
  if (value instanceof GoFloat) {
    return value.float;
  }
  switch (typeof value) {
    case 'number':
    case 'bigint':
    case 'boolean':
      return Number(value);
    case 'string':
      return /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(value) ? Number(value) : 0;
    default:
      return 0;
  }
}
