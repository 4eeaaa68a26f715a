import { isGoList, quote, valueText } from '../../../go/index.ts';
import { failTemplate } from '../../../go/templates/index.ts';
import type { GoValue } from '../../../go/index.ts';
import { hasPart, splitAtParts } from '../../../values/index.ts';
import { boundedList } from '../rendering/bounded-list.ts';
import { castInt, intOperand, textOperand } from '../rendering/operands.ts';
import { counted } from '../rendering/rendering.ts';
import type { FunctionRow, GovernanceFunction, Rendering } from '../rendering/rendering.ts';
import { chargeTexts, objectOf } from '../rendering/value-conversion.ts';

/** Characters that are read one by one in the time of a step; a call is charged for less. */
const CHARS_PER_STEP = 8;

/** A text that is read character by character. */
function scanned(operands: readonly GoValue[], index: number, { meter }: Rendering): string {
  const text = textOperand(operands, index);
  meter.steps(text.length / CHARS_PER_STEP);
  return text;
}

/** A function of one text whose result is about as long. */
function mapping(map: (text: string) => string): GovernanceFunction {
  return counted(1, 1, (operands, rendering) => map(scanned(operands, 0, rendering)));
}

/** A function of two texts, the piped one last. */
function pairwise(call: (first: string, text: string) => GoValue): GovernanceFunction {
  return counted(2, 2, (operands, rendering) => call(textOperand(operands, 0), scanned(operands, 1, rendering)));
}

/** The text of any value, as Sprig's `strval`. */
function textOf(value: GoValue, { meter }: Rendering): string {
  if (typeof value === 'string') {
    return value;
  }
  chargeTexts(value, meter);
  return valueText(value);
}

/** The texts of a list without nil; a single value is a list of itself. */
function textsOf(value: GoValue, rendering: Rendering): readonly string[] {
  if (value === undefined || value === null) {
    return [];
  }
  return isGoList(value)
    ? value.filter((item) => item !== null && item !== undefined).map((item) => textOf(item, rendering))
    : [textOf(value, rendering)];
}

const isPresent = (value: GoValue): boolean => value !== undefined && value !== null;

function joined(separator: string, texts: readonly string[], { meter }: Rendering): string {
  texts.forEach((text) => meter.chars(text.length + separator.length));
  return texts.join(separator);
}

function repeated(text: string, count: number, { meter }: Rendering): string {
  if (count < 0) {
    failTemplate('repeat: the count is negative');
  }
  meter.chars(text.length * count);
  return text.repeat(count);
}

/** Go puts an empty `old` between all code points. */
function replaced(old: string, by: string, text: string, rendering: Rendering): string {
  const parts = old === '' ? ['', ...Array.from(text), ''] : splitAtParts(text, old);
  return joined(by, parts, rendering);
}

/** Go cuts strings by bytes. */
function cut(text: string, start: number, end: number): string {
  return Buffer.from(text).subarray(start, end).toString();
}

function truncated(length: number, text: string): string {
  const size = Buffer.byteLength(text);
  if (length < 0) {
    return size + length > 0 ? cut(text, size + length, size) : text;
  }
  return cut(text, 0, length);
}

function substring(start: number, end: number, text: string): string {
  const size = Buffer.byteLength(text);
  if (start < 0) {
    return cut(text, 0, Math.min(end, size));
  }
  return start > size
    ? failTemplate('substr: the start is behind the end')
    : cut(text, start, end < 0 || end > size ? size : end);
}

/** Removes any of the characters at both ends, in linear time. */
function trimmed(characters: string, text: string): string {
  const set = new Set(characters);
  const letters = Array.from(text);
  const start = letters.findIndex((letter) => !set.has(letter));
  const end = letters.findLastIndex((letter) => !set.has(letter));
  return start === -1 ? '' : letters.slice(start, end + 1).join('');
}

/** Spaces of Go's strings.TrimSpace, as a test for one character. */
const SPACE = /^[\s\u0085]$/u;

function trimSpace(text: string): string {
  const letters = text.trim();
  return SPACE.test(letters.charAt(0)) || SPACE.test(letters.charAt(letters.length - 1))
    ? trimmed('\u0085 \t\n\v\f\r\u00a0\u2028\u2029', letters)
    : letters;
}

/** The entries `_0`, `_1`… of Sprig's split. */
function numbered(parts: readonly string[]): GoValue {
  return objectOf(parts.map((part, index) => [`_${index}`, part]));
}

/** As strings.SplitN: the last part has the rest. A count below zero is no limit. */
function splitN(separator: string, count: number, text: string, rendering: Rendering): readonly string[] {
  if (count === 0) {
    return [];
  }
  const parts = separator === '' ? Array.from(text) : splitAtParts(text, separator);
  const kept =
    count < 0 || parts.length <= count ? parts : [...parts.slice(0, count - 1), parts.slice(count - 1).join(separator)];
  return boundedList(kept, rendering);
}

/** Lines, each after so many spaces. */
function padded(spaces: number, text: string, rendering: Rendering): string {
  const pad = repeated(' ', Math.max(spaces, 0), rendering);
  return pad + replaced('\n', `\n${pad}`, text, rendering);
}

/**
 * Upstream's `indent` counts the spaces of the YAML text, where the lines of a block already have some, and trims the
 * result, so that the first line stays where the action is.
 */
function indented(spaces: number, text: string, rendering: Rendering): string {
  return trimSpace(padded(spaces - rendering.blockIndent, text, rendering));
}

/** Go's strings.Title: a letter after a space, or after an ASCII character that is part of no word. */
function titled(text: string): string {
  // oxlint-disable-next-line no-control-regex -- all of ASCII
  return text.replace(/(^|[\s\x00-\x2f:-@[-^`{-\x7f])(\p{L})/gu, (_, before: string, letter: string) => {
    return before + letter.toUpperCase();
  });
}

function untitled(text: string): string {
  return text.replace(/(^|\s)(\p{L})/gu, (_, before: string, letter: string) => before + letter.toLowerCase());
}

export const STRING_FUNCTIONS: readonly FunctionRow[] = [
  ['trim', mapping(trimSpace)],
  ['trimAll', pairwise(trimmed)],
  ['trimPrefix', pairwise((prefix, text) => (text.startsWith(prefix) ? text.slice(prefix.length) : text))],
  [
    'trimSuffix',
    pairwise((suffix, text) => (text.endsWith(suffix) ? text.slice(0, text.length - suffix.length) : text)),
  ],
  ['upper', mapping((text) => text.toUpperCase())],
  ['lower', mapping((text) => text.toLowerCase())],
  ['title', mapping(titled)],
  ['untitle', mapping(untitled)],
  ['nospace', mapping((text) => text.replace(/\s/g, ''))],
  ['contains', pairwise((part, text) => hasPart(text, part))],
  ['hasPrefix', pairwise((prefix, text) => text.startsWith(prefix))],
  ['hasSuffix', pairwise((suffix, text) => text.endsWith(suffix))],
  [
    'replace',
    counted(3, 3, (operands, rendering) =>
      replaced(textOperand(operands, 0), textOperand(operands, 1), textOperand(operands, 2), rendering),
    ),
  ],
  [
    'repeat',
    counted(2, 2, (operands, rendering) => repeated(textOperand(operands, 1), intOperand(operands, 0), rendering)),
  ],
  [
    'trunc',
    counted(2, 2, (operands, rendering) => truncated(intOperand(operands, 0), scanned(operands, 1, rendering))),
  ],
  [
    'substr',
    counted(3, 3, (operands, rendering) =>
      substring(intOperand(operands, 0), intOperand(operands, 1), scanned(operands, 2, rendering)),
    ),
  ],
  [
    'split',
    counted(2, 2, (operands, rendering) =>
      numbered(splitN(textOperand(operands, 0), -1, scanned(operands, 1, rendering), rendering)),
    ),
  ],
  [
    'splitn',
    counted(3, 3, (operands, rendering) =>
      numbered(splitN(textOperand(operands, 0), intOperand(operands, 1), scanned(operands, 2, rendering), rendering)),
    ),
  ],
  [
    'splitList',
    counted(2, 2, (operands, rendering) =>
      splitN(textOperand(operands, 0), -1, scanned(operands, 1, rendering), rendering),
    ),
  ],
  [
    'join',
    counted(2, 2, (operands, rendering) =>
      joined(textOperand(operands, 0), textsOf(operands[1], rendering), rendering),
    ),
  ],
  [
    'cat',
    counted(0, Infinity, (operands, rendering) =>
      joined(
        ' ',
        operands.filter(isPresent).map((value) => textOf(value, rendering)),
        rendering,
      ),
    ),
  ],
  [
    'quote',
    counted(0, Infinity, (operands, rendering) =>
      joined(
        ' ',
        operands.filter(isPresent).map((value) => quote(textOf(value, rendering))),
        rendering,
      ),
    ),
  ],
  [
    'squote',
    counted(0, Infinity, (operands, rendering) =>
      joined(
        ' ',
        operands.filter(isPresent).map((value) => `'${textOf(value, rendering)}'`),
        rendering,
      ),
    ),
  ],
  [
    'indent',
    counted(2, 2, (operands, rendering) => indented(intOperand(operands, 0), textOperand(operands, 1), rendering)),
  ],
  [
    'nindent',
    counted(
      2,
      2,
      (operands, rendering) =>
        `\n${padded(intOperand(operands, 0) - rendering.blockIndent, textOperand(operands, 1), rendering)}`,
    ),
  ],
  [
    // The first operand is put in by the renderer: the spaces before the action.
    'autoindent',
    counted(1, 2, (operands, rendering) =>
      operands.length === 1
        ? trimSpace(textOperand(operands, 0))
        : trimSpace(padded(Number(castInt(operands[0])), textOperand(operands, 1), rendering)),
    ),
  ],
  ['toString', counted(1, 1, ([value], rendering) => textOf(value, rendering))],
  ['toStrings', counted(1, 1, ([value], rendering) => textsOf(value, rendering))],
  [
    'plural',
    counted(3, 3, (operands) => (intOperand(operands, 2) === 1 ? textOperand(operands, 0) : textOperand(operands, 1))),
  ],
];
