import { RE2JS } from 're2js';

/** An expected text: the text itself, a part of it, an RE2 pattern, or several of these. */
export type TextMatcher =
  | { readonly kind: 'equals'; readonly text: string }
  | { readonly kind: 'contains'; readonly text: string }
  | { readonly kind: 'matches'; readonly text: string; readonly pattern: RE2JS }
  /** All of several conditions. */
  | { readonly kind: 'all'; readonly matchers: readonly TextMatcher[] };

/** A matcher of an RE2 pattern, which may match anywhere in a text. @throws Error when the pattern is invalid */
export function patternMatcher(text: string): TextMatcher {
  return { kind: 'matches', text, pattern: RE2JS.compile(text) };
}

export function isMatch(matcher: TextMatcher, text: string): boolean {
  switch (matcher.kind) {
    case 'equals':
      return text === matcher.text;
    case 'contains':
      return text.includes(matcher.text);
    case 'matches':
      return matcher.pattern.matcher(text).find();
    case 'all':
      return matcher.matchers.every((one) => isMatch(one, text));
    default:
      return matcher satisfies never;
  }
}

/** The matcher in words, for messages. */
export function describeMatcher(matcher: TextMatcher): string {
  switch (matcher.kind) {
    case 'equals':
      return matcher.text;
    case 'contains':
      return `a text that contains ${JSON.stringify(matcher.text)}`;
    case 'matches':
      return `a text that matches ${matcher.text}`;
    case 'all':
      return matcher.matchers.map(describeMatcher).join('\nand ');
    default:
      return matcher satisfies never;
  }
}
