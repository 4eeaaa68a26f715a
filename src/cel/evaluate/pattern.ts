import { RE2JS } from 're2js';
import { MAX_PATTERN_SIZE, patternProblem } from '../../go/index.ts';
import { EvaluationFailure } from '../model/value.ts';
import { errorText, KeptEntries } from '../../values/index.ts';

/** A compiled RE2 regular expression. Matching takes linear time in the text. */
export interface CelPattern {
  /** For finding and replacing. */
  readonly re2: RE2JS;
  /** Number of program instructions: the maximum number of steps of a match per character. */
  readonly size: number;
  /** Whether the pattern matches anywhere in the text. */
  test(text: string): boolean;
}

/** API servers append text to this message. */
const TRAILING_BACKSLASH = /trailing backslash at end of expression$/;

/**
 * The patterns that were compiled last, by source, up to {@link MAX_PATTERN_SIZE} instructions in all: a literal is compiled when it
 * is checked and again when its program is made, and patterns of parameters for each request.
 */
const recent = new KeptEntries<string, CelPattern>({ maxSize: MAX_PATTERN_SIZE, sizeOf: ({ size }) => size });

/** Compiles a regular expression; a failure with the message of API servers if it is invalid. */
export function compilePattern(source: string): CelPattern | EvaluationFailure {
  const known = recent.get(source);
  if (known !== undefined) {
    return known;
  }
  const problem = patternProblem(source);
  if (problem !== undefined) {
    return new EvaluationFailure(problem);
  }
  try {
    const re2 = RE2JS.compile(source);
    const pattern = { re2, size: re2.programSize(), test: (text: string) => re2.test(text) };
    recent.set(source, pattern);
    return pattern;
  } catch (error) {
    const message = errorText(error);
    return new EvaluationFailure(TRAILING_BACKSLASH.test(message) ? `${message}: \`\`` : message);
  }
}
