import { compilePattern, isInt } from '../evaluate/index.ts';
import type { CelPattern } from '../evaluate/index.ts';
import type { Library, Overload, PreparedCall } from '../model/library.ts';
import { INT, listOf, STRING } from '../model/type.ts';
import { EvaluationFailure, NO_SUCH_OVERLOAD } from '../model/value.ts';
import type { CelResult, CelValue } from '../model/value.ts';
import { MATCH } from './costs.ts';
import { describe, fail, member } from './declare.ts';
import type { Int } from './declare.ts';
import { MAX_FIND_WORK } from './limits.ts';

const TAKES_TOO_LONG = `findAll takes too long: expected matches times length of the text of at most ${MAX_FIND_WORK}`;

/** Default number of matches: all. */
const ALL = -1;

/** An overload with a pattern as second argument, which is compiled once if it is a literal. */
function patterned(
  id: string,
  parameters: Overload['parameters'],
  result: Overload['result'],
  use: (text: string, pattern: CelPattern, count?: Int) => CelResult,
): Overload {
  const call = (text: string, source: string, count?: Int): CelResult => {
    const pattern = compilePattern(source);
    return pattern instanceof EvaluationFailure ? fail(`Illegal regex: ${pattern.message}`) : use(text, pattern, count);
  };
  const prepare = ([, source]: readonly unknown[]): PreparedCall | EvaluationFailure | undefined => {
    if (typeof source !== 'string') {
      return undefined;
    }
    const pattern = compilePattern(source);
    if (pattern instanceof EvaluationFailure) {
      return pattern;
    }
    return (text, _source, count) => {
      const isCount = count === undefined || isInt(count);
      return typeof text === 'string' && isCount ? use(text, pattern, count) : fail(NO_SUCH_OVERLOAD);
    };
  };
  return member(id, parameters, result, call, { ...MATCH, prepare, work: workOf });
}

/** RE2 regular expressions, besides `matches`. */
export const REGEX_LIBRARY: Library = {
  name: 'Regular expressions',
  since: 0,
  functions: [
    describe(
      'find',
      'The first match, or an empty string.',
      ["'abc 123'.find('[0-9]+')", "'123'"],
      [patterned('string_find_string', [STRING, STRING], STRING, find)],
    ),
    describe(
      'findAll',
      'All matches; a second argument limits their number.',
      ["'a1 b22'.findAll('[0-9]+')", "['1', '22']"],
      [
        patterned('string_find_all_string', [STRING, STRING], listOf(STRING), findAll),
        patterned('string_find_all_string_int', [STRING, STRING, INT], listOf(STRING), findAll),
      ],
    ),
  ],
};

function find(text: string, pattern: CelPattern): CelResult {
  const matcher = pattern.re2.matcher(text);
  return matcher.find() ? (matcher.group() ?? '') : '';
}

/** Characters per unit of work: a search takes more than 10 ns per character, but seldom scans all of them. */
const CHARACTERS_PER_WORK = 2;

/** In the worst case, each match scans the rest of the text: half of it on average. */
function workOf([text = null]: readonly CelValue[], result: CelResult): number {
  if (result instanceof EvaluationFailure && result.message === TAKES_TOO_LONG) {
    return MAX_FIND_WORK / CHARACTERS_PER_WORK;
  }
  const matches = Array.isArray(result) ? result.length : 0;
  return typeof text === 'string' ? (text.length * matches) / 2 / CHARACTERS_PER_WORK : 0;
}

/** An empty match directly after another match does not count. */
function findAll(text: string, pattern: CelPattern, count: Int = ALL): CelResult {
  const limit = count < 0 ? Infinity : Number(count);
  const matcher = pattern.re2.matcher(text);
  const found: string[] = [];
  let work = 0;
  let previousEnd = -1;
  for (let at = 0; found.length < limit && at <= text.length && matcher.find(at);) {
    const start = matcher.start();
    const end = matcher.end();
    if (end > start || start !== previousEnd) {
      found.push(text.slice(start, end));
    }
    previousEnd = end;
    at = end > start ? end : end + widthAt(text, end);
    work += text.length - start;
    if (work > MAX_FIND_WORK) {
      return fail(TAKES_TOO_LONG);
    }
  }
  return found;
}

/** UTF-16 units of the code point at an offset. */
function widthAt(text: string, offset: number): number {
  return (text.codePointAt(offset) ?? 0) > 0xffff ? 2 : 1;
}
