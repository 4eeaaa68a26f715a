import { RE2JS } from 're2js';
import { errorText } from '../../values/index.ts';

/** A regular expression in Go's syntax, matched in linear time. */
export interface Pattern {
  /** Whether the text contains a match. */
  test(text: string): boolean;
  /** The number of its instructions: a match takes time for each one, times the length of the text. */
  programSize(): number;
}

/** Longer patterns take too much memory. Kubernetes' own longest has fewer than 1,000 characters. */
export const MAX_PATTERN_LENGTH = 10_000;

/** The compiled pattern, or an error message. */
export function compilePattern(pattern: string): Pattern | string {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    return `expression is longer than ${MAX_PATTERN_LENGTH} characters`;
  }
  try {
    return RE2JS.compile(pattern);
  } catch (error) {
    return errorText(error);
  }
}
