import { RE2JS } from 're2js';
import { EvaluationFailure } from '../value.ts';

/** A compiled regular expression of RE2's syntax, in time linear in the text. */
export interface Pattern {
  /** For finding and replacing. */
  readonly re2: RE2JS;
  /** Whether it matches anywhere in the text. */
  test(text: string): boolean;
}

/** Compiles a regular expression; a failure, worded as API servers do, when it is none. */
export function compilePattern(source: string): Pattern | EvaluationFailure {
  try {
    const re2 = RE2JS.compile(source);
    return { re2, test: (text) => re2.test(text) };
  } catch (error) {
    return new EvaluationFailure(error instanceof Error ? error.message : String(error));
  }
}
