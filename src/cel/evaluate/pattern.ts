import { RE2JS } from 're2js';
import { patternProblem } from '../../go/index.ts';
import { EvaluationFailure } from '../value.ts';
import { errorText } from '../../values/index.ts';

/** A compiled RE2 regular expression. Matching takes linear time in the text. */
export interface Pattern {
  /** For finding and replacing. */
  readonly re2: RE2JS;
  /** Number of program instructions: the maximum number of steps of a match per character. */
  readonly size: number;
  /** Whether the pattern matches anywhere in the text. */
  test(text: string): boolean;
}

/** API servers append text to this message. */
const TRAILING_BACKSLASH = /trailing backslash at end of expression$/;

/** Compiles a regular expression; a failure with the message of API servers if it is invalid. */
export function compilePattern(source: string): Pattern | EvaluationFailure {
  const problem = patternProblem(source);
  if (problem !== undefined) {
    return new EvaluationFailure(problem);
  }
  try {
    const re2 = RE2JS.compile(source);
    return { re2, size: re2.programSize(), test: (text) => re2.test(text) };
  } catch (error) {
    const message = errorText(error);
    return new EvaluationFailure(TRAILING_BACKSLASH.test(message) ? `${message}: \`\`` : message);
  }
}
