import { RE2JS } from 're2js';
import { patternProblem } from '../pattern-size.ts';
import { errorText } from '../../values/index.ts';

/** A regular expression in Go's syntax, matched in linear time. */
export interface Pattern {
  /** Whether the text contains a match. */
  test(text: string): boolean;
  /** The number of its instructions: a match takes time for each one, times the length of the text. */
  programSize(): number;
}

/** The compiled pattern, or an error message. */
export function compilePattern(pattern: string): Pattern | string {
  const problem = patternProblem(pattern);
  if (problem !== undefined) {
    return problem;
  }
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    return errorText(error);
  }
}
