import { compareStrings } from '../compare-strings.ts';
import { failTemplate } from './errors.ts';
import { queryEscape } from '../query-escape.ts';
import { sprintf } from '../sprintf.ts';
import type { FormatArgument } from '../sprintf.ts';
import { GoFloat, isGoList, isGoObject, isIntegerNumber, JsonNumber } from '../value.ts';
import type { GoValue } from '../value.ts';
import { sortedEntries, valueText } from '../value-text.ts';

/** Go's text for a missing value. */
export const NO_VALUE = '<no value>';

/** Called with the size of each text before it is made; throws when a limit is exceeded. */
type TextMeter = (chars: number) => void;

/**
 * A function of templates. A piped value is its last operand.
 * @param meter for text that the function makes, unless it is no longer than its operands
 * @throws TemplateError `template-failed`, by `failTemplate`, for invalid operands
 */
export type TemplateFunction = (operands: readonly GoValue[], meter: TextMeter) => GoValue;

/** Whether a condition holds: the value is neither empty nor zero. */
export function isTrue(value: GoValue): boolean {
  if (typeof value === 'string' || isGoList(value)) {
    return value.length > 0;
  }
  if (isGoObject(value)) {
    return Object.keys(value).length > 0;
  }
  // json.Number is a string, which is never empty.
  return value instanceof GoFloat ? value.float !== 0 : Number.isNaN(value) || Boolean(value);
}

/** The own entry of a map; undefined for a missing one. */
export function entryOf(object: { readonly [key: string]: GoValue }, key: string): GoValue {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** An index or length given to a function. */
function intOperand(value: GoValue): number {
  const int = basic(value);
  return typeof int === 'bigint' ? Number(int) : failTemplate('an index must be an integer');
}

/** Values of Go's basic kinds: integers as bigint, floats as number, `json.Number` as string. */
function basic(value: GoValue): bigint | boolean | number | string | undefined {
  if (value instanceof JsonNumber) {
    return value.text;
  }
  if (value instanceof GoFloat) {
    return value.float;
  }
  if (typeof value === 'number') {
    return isIntegerNumber(value) ? BigInt(value) : value;
  }
  return typeof value === 'object' ? undefined : value;
}

/** Go's Sprint: a space between operands of which neither is a string. */
function sprint(values: readonly GoValue[], meter: TextMeter): string {
  const isText = (value: GoValue): boolean => typeof value === 'string';
  return joined(
    values.map(
      (value, index) => (index > 0 && !isText(value) && !isText(values[index - 1]) ? ' ' : '') + valueText(value),
    ),
    '',
    meter,
  );
}

function joined(texts: readonly string[], separator: string, meter: TextMeter): string {
  for (const text of texts) {
    meter(text.length + separator.length);
  }
  return texts.join(separator);
}

function formatArgument(value: GoValue): FormatArgument {
  const plain = basic(value);
  switch (typeof plain) {
    case 'bigint':
      return { type: typeof value === 'bigint' ? 'int' : 'int64', value: plain };
    case 'number':
      return { type: 'float64', value: plain };
    case 'boolean':
      return { type: 'bool', value: plain };
    case 'string':
      return { type: value instanceof JsonNumber ? 'json.Number' : 'string', value: plain };
    default:
      return compositeArgument(value);
  }
}

function compositeArgument(value: GoValue): FormatArgument {
  if (isGoList(value)) {
    return { type: '[]interface {}', items: value.map(formatArgument) };
  }
  return isGoObject(value)
    ? {
        type: 'map[string]interface {}',
        entries: sortedEntries(value).map(([key, item]) => [key, formatArgument(item)]),
      }
    : { type: '<nil>' };
}

function isNothing(value: GoValue): boolean {
  return value === undefined || value === null;
}

function isEqual(a: GoValue, b: GoValue): boolean {
  if (isNothing(a) || isNothing(b)) {
    return isNothing(a) === isNothing(b);
  }
  const [x, y] = [basic(a), basic(b)];
  if (x === undefined || typeof x !== typeof y) {
    return failTemplate('incompatible types for comparison');
  }
  return x === y;
}

/** A function that compares two values of one ordered kind. */
function comparison(holds: (order: number) => boolean): TemplateFunction {
  return ([a, b]) => {
    const [x, y] = [basic(a), basic(b)];
    if (typeof x === 'string' && typeof y === 'string') {
      return holds(compareStrings(x, y));
    }
    if ((typeof x === 'bigint' && typeof y === 'bigint') || (typeof x === 'number' && typeof y === 'number')) {
      return holds(x < y ? -1 : x > y ? 1 : 0);
    }
    return failTemplate('incompatible types for comparison');
  };
}

/** Operands may not be fewer or more than a function has. */
function counted(least: number, most: number, call: TemplateFunction): TemplateFunction {
  return (operands, meter) =>
    operands.length >= least && operands.length <= most
      ? call(operands, meter)
      : failTemplate(`wrong number of operands: ${operands.length}`);
}

function lengthOf(value: GoValue): bigint {
  if (isGoObject(value)) {
    return BigInt(Object.keys(value).length);
  }
  if (isGoList(value)) {
    return BigInt(value.length);
  }
  const text = basic(value);
  return typeof text === 'string' ? BigInt(Buffer.byteLength(text)) : failTemplate('len of a value without a length');
}

function indexInto([value, ...keys]: readonly GoValue[]): GoValue {
  let at = value;
  for (const key of keys) {
    if (at === undefined || at === null) {
      return failTemplate('index of untyped nil');
    }
    if (isGoObject(at)) {
      at = typeof key === 'string' ? (entryOf(at, key) ?? null) : failTemplate('the index of a map must be a string');
    } else {
      // Go indexes strings by bytes.
      const items = typeof at === 'string' ? Array.from(Buffer.from(at), BigInt) : at;
      const index = intOperand(key);
      at = isGoList(items) && index >= 0 && index < items.length ? items[index] : failTemplate('index out of range');
    }
  }
  return at;
}

function sliceOf([value, ...bounds]: readonly GoValue[]): GoValue {
  // Go slices strings by bytes.
  const items =
    typeof value === 'string'
      ? Buffer.from(value)
      : isGoList(value)
        ? value
        : failTemplate('slice of a value that is no list');
  const [from = 0, to = items.length, capacity = items.length] = bounds.map(intOperand);
  if (from < 0 || to < from || to > capacity || capacity > items.length) {
    failTemplate('slice out of range');
  }
  return Buffer.isBuffer(items) ? items.subarray(from, to).toString() : items.slice(from, to);
}

const HTML_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&#34;'],
  ["'", '&#39;'],
  ['\0', '\ufffd'],
]);

function escapeHtml(text: string): string {
  return text.replace(/[&<>"'\0]/g, (character) => HTML_ESCAPES.get(character) ?? character);
}

function escapeJs(text: string): string {
  // oxlint-disable-next-line no-control-regex -- Go escapes these
  return text.replace(/[\\'"<>&=\u0000-\u001f]/g, (character) => {
    return /[\\'"]/.test(character)
      ? `\\${character}`
      : `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
  });
}

/** A function that escapes the text of its operands. */
function escaping(escape: (text: string) => string): TemplateFunction {
  return (operands, meter) => {
    const text = escape(
      sprint(
        operands.map((value) => (isNothing(value) ? NO_VALUE : value)),
        meter,
      ),
    );
    meter(text.length);
    return text;
  };
}

/** Functions that all templates have, besides `and` and `or`: https://pkg.go.dev/text/template#hdr-Functions */
export const BUILTIN_FUNCTIONS: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  ['not', counted(1, 1, ([value]) => !isTrue(value))],
  ['eq', counted(2, Infinity, ([first, ...others]) => others.some((other) => isEqual(first, other)))],
  ['ne', counted(2, 2, ([a, b]) => !isEqual(a, b))],
  [
    'lt',
    counted(
      2,
      2,
      comparison((order) => order < 0),
    ),
  ],
  [
    'le',
    counted(
      2,
      2,
      comparison((order) => order <= 0),
    ),
  ],
  [
    'gt',
    counted(
      2,
      2,
      comparison((order) => order > 0),
    ),
  ],
  [
    'ge',
    counted(
      2,
      2,
      comparison((order) => order >= 0),
    ),
  ],
  ['len', counted(1, 1, ([value]) => lengthOf(value))],
  ['index', counted(1, Infinity, indexInto)],
  ['slice', counted(1, 4, sliceOf)],
  ['print', sprint],
  [
    'println',
    (values, meter) =>
      `${joined(
        values.map((value) => valueText(value)),
        ' ',
        meter,
      )}\n`,
  ],
  [
    'printf',
    ([format, ...values], meter) =>
      typeof format === 'string'
        ? sprintf(format, values.map(formatArgument), meter)
        : failTemplate('printf needs a format'),
  ],
  ['html', escaping(escapeHtml)],
  ['js', escaping(escapeJs)],
  ['urlquery', escaping(queryEscape)],
]);
