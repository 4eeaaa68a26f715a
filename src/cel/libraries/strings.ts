import { addRanges, exactly, multiplyRanges, scaleRange } from '../model/range.ts';
import type { CallEstimate, CallSizes, FunctionDeclaration, Library, Overload, Range } from '../model/library.ts';
import { INT, DYN, listOf, STRING } from '../model/type.ts';
import { rangeOf, scan, sizeOfResult, TRAVERSAL } from './costs.ts';
import { describe, global, member } from './declare.ts';
import { elementSizes, SEARCH } from './list-costs.ts';
import { formatText, formatWork } from './string-format.ts';
import {
  charAt,
  indexOf,
  join,
  lastIndexOf,
  lowerAscii,
  quote,
  replace,
  split,
  substring,
  trim,
  upperAscii,
} from './string-functions.ts';

const STRING_LIST = listOf(STRING);
const ONE_PASS = scan({ keepsSize: true });

/** Traverses the string and creates a result of the same length. */
const TWO_PASSES = scan({ passes: 2 }).cost;

function estimateReplace(sizes: CallSizes): CallEstimate {
  const text = rangeOf(sizes, 0);
  return {
    cost: scaleRange(text, 2 * TRAVERSAL),
    size: {
      min: shortestReplacement(text, rangeOf(sizes, 1), rangeOf(sizes, 2)),
      max: longestReplacement(text, rangeOf(sizes, 1), rangeOf(sizes, 2)),
    },
  };
}

function longestReplacement(text: Range, old: Range, by: Range): number {
  if (old.min === 0) {
    return product(text.max + 1, by.max) + text.max;
  }
  return by.max <= old.min ? text.max : product(Math.ceil(text.max / old.min), by.max);
}

function shortestReplacement(text: Range, old: Range, by: Range): number {
  if (old.max === 0) {
    return product(text.min + 1, by.min) + text.min;
  }
  return old.max <= by.min ? text.min : product(Math.ceil(text.min / old.max), by.min);
}

function product(count: number, size: number): number {
  return multiplyRanges(exactly(count), exactly(size)).max;
}

function estimateSplit(sizes: CallSizes): CallEstimate {
  const text = rangeOf(sizes, 0);
  const count = sizes.literals[2];
  const max = typeof count === 'number' || typeof count === 'bigint' ? asUnsigned(count) : text.max;
  return { cost: scaleRange(text, 2 * TRAVERSAL), size: { min: 0, max } };
}

/** A count as in estimates of API servers: a negative one is larger than any other. */
function asUnsigned(count: number | bigint): number {
  return count < 0 ? Infinity : Number(count);
}

function estimateJoin(sizes: CallSizes): CallEstimate {
  const list = rangeOf(sizes, 0);
  const elements = elementSizes(sizes);
  let size: Range = elements === undefined ? exactly(0) : multiplyRanges(list, elements);
  if (sizes.args.length > 1) {
    const gaps = { min: Math.max(0, list.min - 1), max: Math.max(0, list.max - 1) };
    size = addRanges(size, multiplyRanges(rangeOf(sizes, 1), gaps));
  }
  return { cost: scaleRange(size, TRAVERSAL), size };
}

const JOIN: Pick<Overload, 'cost' | 'estimate'> = {
  cost: (_args, result) => Math.ceil(sizeOfResult(result) * 2 * TRAVERSAL),
  estimate: estimateJoin,
};
const REPLACE = { cost: TWO_PASSES, estimate: estimateReplace } as const;
const SPLIT = { cost: TWO_PASSES, estimate: estimateSplit } as const;

/** API servers use unsigned sizes: twice an unbounded size overflows to 0. */
function quotedMax(max: number): number {
  return max === Infinity ? 0 : 2 * max + 2;
}

const BASE_FUNCTIONS: readonly FunctionDeclaration[] = [
  describe(
    'charAt',
    'The character at an index; an empty string at the end.',
    ["'abc'.charAt(1)", "'b'"],
    [member('string_char_at_int', [STRING, INT], STRING, charAt)],
  ),
  describe(
    'indexOf',
    'The index of the first occurrence, or -1; the second argument is the index at which the search starts.',
    ["'banana'.indexOf('an', 2)", '3'],
    [
      member('string_index_of_string', [STRING, STRING], INT, indexOf, SEARCH),
      member('string_index_of_string_int', [STRING, STRING, INT], INT, indexOf, SEARCH),
    ],
  ),
  describe(
    'lastIndexOf',
    'The index of the last occurrence, or -1; the second argument is the index at which the search starts.',
    ["'banana'.lastIndexOf('an')", '3'],
    [
      member('string_last_index_of_string', [STRING, STRING], INT, lastIndexOf, SEARCH),
      member('string_last_index_of_string_int', [STRING, STRING, INT], INT, lastIndexOf, SEARCH),
    ],
  ),
  describe(
    'join',
    'The strings of the list, joined with a separator (default: none).',
    ["['a', 'b'].join('-')", "'a-b'"],
    [
      member('list_join', [STRING_LIST], STRING, join, JOIN),
      member('list_join_string', [STRING_LIST, STRING], STRING, join, JOIN),
    ],
  ),
  describe(
    'lowerAscii',
    'The string with ASCII letters in lower case.',
    ["'Äpfel UND'.lowerAscii()", "'Äpfel und'"],
    [member('string_lower_ascii', [STRING], STRING, lowerAscii, ONE_PASS)],
  ),
  describe(
    'upperAscii',
    'The string with ASCII letters in upper case.',
    ["'abc'.upperAscii()", "'ABC'"],
    [member('string_upper_ascii', [STRING], STRING, upperAscii, ONE_PASS)],
  ),
  describe(
    'replace',
    'The string with occurrences of the first argument replaced by the second; a third argument limits their number.',
    ["'a-b-c'.replace('-', '.', 1)", "'a.b-c'"],
    [
      member('string_replace_string_string', [STRING, STRING, STRING], STRING, replace, REPLACE),
      member('string_replace_string_string_int', [STRING, STRING, STRING, INT], STRING, replace, REPLACE),
    ],
  ),
  describe(
    'split',
    'The parts between separators; a second argument limits their number.',
    ["'a,b,c'.split(',', 2)", "['a', 'b,c']"],
    [
      member('string_split_string', [STRING, STRING], STRING_LIST, split, SPLIT),
      member('string_split_string_int', [STRING, STRING, INT], STRING_LIST, split, SPLIT),
    ],
  ),
  describe(
    'substring',
    'The characters from a start index up to, but not including, an end index (default: the end).',
    ["'abcd'.substring(1, 3)", "'bc'"],
    [
      member('string_substring_int', [STRING, INT], STRING, substring, ONE_PASS),
      member('string_substring_int_int', [STRING, INT, INT], STRING, substring, ONE_PASS),
    ],
  ),
  describe(
    'trim',
    'The string without white space at both ends.',
    ["'  a b '.trim()", "'a b'"],
    [member('string_trim', [STRING], STRING, trim, ONE_PASS)],
  ),
];

const FORMAT_FUNCTIONS: readonly FunctionDeclaration[] = [
  describe(
    'format',
    'The format string with its clauses replaced by the arguments: `%s` any value, `%d` integers, `%f` and `%e` doubles, `%b`, `%o` and `%x` integers in base 2, 8 and 16.',
    ["'%s has %d'.format(['a', 2])", "'a has 2'"],
    [
      member('string_format', [STRING, listOf(DYN)], STRING, formatText, {
        ...scan(),
        costById: true,
        work: formatWork,
      }),
    ],
  ),
  describe(
    'strings.quote',
    'The string as a CEL string literal.',
    ["strings.quote('a\"b')", '\'"a\\\\"b"\''],
    [
      global('strings_quote', [STRING], STRING, quote, {
        cost: ONE_PASS.cost,
        costById: true,
        estimate: (sizes) => {
          const size = rangeOf(sizes, 0);
          return { cost: scaleRange(size, TRAVERSAL), size: { min: size.min + 2, max: quotedMax(size.max) } };
        },
      }),
    ],
  ),
];

/** String functions of all API servers. */
export const STRINGS_LIBRARY: Library = { name: 'Strings', since: 0, functions: BASE_FUNCTIONS };

/** Functions that version 2 of the string library added. */
export const STRING_FORMAT_LIBRARY: Library = {
  name: 'Strings',
  since: 29,
  functions: FORMAT_FUNCTIONS,
};
