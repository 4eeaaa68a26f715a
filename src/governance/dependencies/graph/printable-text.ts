/** Control characters, line breaks, invisible ones, and those that change the direction of text. */
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** A text on one line that cannot control a terminal: all else becomes `\u{…}`. */
export function printableText(text: string): string {
  return text.toWellFormed().replace(UNPRINTABLE, (found) => `\\u{${found.codePointAt(0)?.toString(16) ?? ''}}`);
}
