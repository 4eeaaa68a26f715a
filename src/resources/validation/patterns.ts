import { RE2JS } from 're2js';
import { errorText } from '../../values/index.ts';

/** A regular expression in Go's syntax. Matching takes time linear in the text. */
export interface Pattern {
  /** Whether it is found anywhere in a text. */
  test(text: string): boolean;
}

/** Patterns that are longer cost more memory than a schema should. Kubernetes' own longest has fewer than 1,000 characters. */
export const MAX_PATTERN_LENGTH = 10_000;

/** The pattern, or as a text why it is none. */
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
