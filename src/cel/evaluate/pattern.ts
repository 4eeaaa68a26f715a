import { RE2JS } from 're2js';
import { EvaluationFailure } from '../value.ts';
import { errorText } from '../../values/index.ts';

/** A compiled regular expression of RE2's syntax, in time linear in the text. */
export interface Pattern {
  /** For finding and replacing. */
  readonly re2: RE2JS;
  /** Instructions of its program: a match takes at most so many steps for every character of the text. */
  readonly size: number;
  /** Whether it matches anywhere in the text. */
  test(text: string): boolean;
}

/** What API servers append to this message. */
const TRAILING_BACKSLASH = /trailing backslash at end of expression$/;

/** Compiles a regular expression; a failure, worded as API servers do, when it is none. */
export function compilePattern(source: string): Pattern | EvaluationFailure {
  try {
    const re2 = RE2JS.compile(source);
    return { re2, size: re2.programSize(), test: (text) => re2.test(text) };
  } catch (error) {
    const message = errorText(error);
    return new EvaluationFailure(TRAILING_BACKSLASH.test(message) ? `${message}: \`\`` : message);
  }
}
