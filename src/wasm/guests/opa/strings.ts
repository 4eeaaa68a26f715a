import { isInt64, sprintf } from '../../../go/index.ts';
import type { FormatArgument } from '../../../go/index.ts';
import { positionsOf, splitAtParts } from '../../../values/index.ts';
import {
  arrayOperand,
  boundedChars,
  FUEL_PER_CHAR,
  intOperand,
  objectOperand,
  operand,
  stringOperand,
  stringsOperand,
  undefinedBecause,
  wrongType,
} from './builtin.ts';
import type { BuiltinContext, OpaBuiltin } from './builtin.ts';
import { RegoNumber } from './number.ts';
import { isArray, RegoSet } from './value.ts';
import type { RegoValue } from './value.ts';
import { printValue } from './value-text.ts';

const sprintfBuiltin: OpaBuiltin = (operands, context) => {
  const format = stringOperand(operands, 0);
  const args = arrayOperand(operands, 1).map((value) => formatArgument(value, context));
  return sprintf(format, args, boundedChars('sprintf', context));
};

/** Converting digits between decimal and binary takes more than linear time, though far less than quadratic. */
function chargeDigits(context: BuiltinContext, digits: string): void {
  context.charge(digits.length * Math.sqrt(digits.length) * FUEL_PER_CHAR);
}

/**
 * As in OPA, the notation of a number decides its Go type: 1.0 is a float64, 1 an int64, longer integers are big.Int.
 */
function formatArgument(value: RegoValue, context: BuiltinContext): FormatArgument {
  if (typeof value === 'string') {
    return { type: 'string', value };
  }
  if (!(value instanceof RegoNumber)) {
    return { type: 'string', value: printValue(value) };
  }
  if (/[.eE]/.test(value.text)) {
    const float = Number(value.text);
    return Number.isFinite(float) ? { type: 'float64', value: float } : { type: 'string', value: value.text };
  }
  chargeDigits(context, value.text);
  const integer = BigInt(value.text);
  return { type: isInt64(integer) ? 'int64' : '*big.Int', value: integer };
}

/** All positions of the search string in code points, including overlapping ones. */
const indexOfN: OpaBuiltin = (operands, context) => {
  const base = stringOperand(operands, 0);
  const search = stringOperand(operands, 1);
  if (search === '') {
    undefinedBecause('indexof_n: empty search string');
  }
  chargeSearch(context, base, search);
  const positions: RegoValue[] = [];
  let runes = 0;
  let counted = 0;
  for (const at of positionsOf(base, search)) {
    for (; counted < at; counted += 1) {
      runes += isLowSurrogate(base, counted) ? 0 : 1;
    }
    if (!isLowSurrogate(base, at)) {
      positions.push(RegoNumber.of(runes));
    }
  }
  return positions;
};

function chargeSearch(context: BuiltinContext, text: string, search: string): void {
  context.charge((text.length + search.length) * FUEL_PER_CHAR);
}

function isLowSurrogate(text: string, index: number): boolean {
  return (text.charCodeAt(index) & 0xfc00) === 0xdc00;
}

const count: OpaBuiltin = (operands, context) => {
  const text = stringOperand(operands, 0);
  const search = stringOperand(operands, 1);
  chargeSearch(context, text, search);
  if (search === '') {
    return RegoNumber.of(Array.from(text).length + 1);
  }
  let found = 0;
  let next = 0;
  for (const at of positionsOf(text, search)) {
    if (at >= next) {
      found += 1;
      next = at + search.length;
    }
  }
  return RegoNumber.of(found);
};

function anyAffix(matches: (text: string, affix: string) => boolean): OpaBuiltin {
  return (operands, context) => {
    const texts = stringOrStrings(operands, 0);
    const affixes = stringOrStrings(operands, 1);
    const compared = affixes.reduce((sum, affix) => sum + affix.length, 0) * FUEL_PER_CHAR;
    context.charge(texts.length * (affixes.length + compared));
    return texts.some((text) => affixes.some((affix) => matches(text, affix)));
  };
}

function stringOrStrings(operands: readonly RegoValue[], index: number): readonly string[] {
  const value = operand(operands, index);
  if (typeof value === 'string') {
    return [value];
  }
  return isArray(value) || value instanceof RegoSet
    ? stringsOperand(operands, index)
    : wrongType(value, index, 'string', 'array', 'set');
}

const splitN: OpaBuiltin = (operands, context) => {
  const text = stringOperand(operands, 0);
  const delimiter = stringOperand(operands, 1);
  chargeSearch(context, text, delimiter);
  const limit = intOperand(operands, 2);
  const parts = delimiter === '' ? Array.from(text) : splitAtParts(text, delimiter);
  return limit >= 0n ? parts.slice(0, Number(limit)) : parts.slice(Math.max(parts.length + Number(limit), 0));
};

const reverse: OpaBuiltin = (operands) => Array.from(stringOperand(operands, 0)).reverse().join('');

/** Replaces all patterns in one pass from left to right; at each position, the first pattern in Rego's order wins. */
const replaceN: OpaBuiltin = (operands, context) => {
  const pairs = objectOperand(operands, 0)
    .sorted()
    .map(([pattern, replacement]): [string, string] => {
      if (typeof pattern !== 'string' || typeof replacement !== 'string') {
        return wrongType(typeof pattern === 'string' ? replacement : pattern, 0, 'string');
      }
      return [pattern, replacement];
    });
  const text = stringOperand(operands, 1);
  context.charge(text.length * (pairs.length + 1) * FUEL_PER_CHAR);
  let output = '';
  let at = 0;
  let afterEmptyMatch = false;
  while (at <= text.length) {
    const pair = pairs.find(([pattern]) => (pattern !== '' || !afterEmptyMatch) && isAt(text, at, pattern, context));
    afterEmptyMatch = pair?.[0] === '';
    if (pair !== undefined) {
      // An empty pattern does not consume characters, so others can match at the same position.
      output += pair[1];
      at += pair[0].length;
    } else {
      const rune = at < text.length ? String.fromCodePoint(text.codePointAt(at) ?? 0) : '';
      output += rune;
      at += rune.length || 1;
    }
  }
  return output;
};

/** Charges for a comparison that does not end with the first character. */
function isAt(text: string, at: number, pattern: string, context: BuiltinContext): boolean {
  if (pattern !== '' && text.charCodeAt(at) !== pattern.charCodeAt(0)) {
    return false;
  }
  context.charge(pattern.length * FUEL_PER_CHAR);
  return text.startsWith(pattern, at);
}

export const stringBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['sprintf', sprintfBuiltin],
  ['indexof_n', indexOfN],
  ['strings.count', count],
  ['strings.any_prefix_match', anyAffix((text, affix) => text.startsWith(affix))],
  ['strings.any_suffix_match', anyAffix((text, affix) => text.endsWith(affix))],
  ['strings.split_n', splitN],
  ['strings.reverse', reverse],
  ['strings.replace_n', replaceN],
];
