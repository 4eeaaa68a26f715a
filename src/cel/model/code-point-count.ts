/**
 * From this length, testing for surrogates first is faster: V8 answers at once for strings of one byte per character.
 */
const LONG = 20;
const LEADING_SURROGATE = /[\ud800-\udbff]/;

/** Number of code points; a lone surrogate counts as one. */
export function codePointCount(text: string): number {
  let count = text.length;
  if (count > LONG && !LEADING_SURROGATE.test(text)) {
    return count;
  }
  for (let index = 0; index < text.length - 1; index++) {
    if ((text.charCodeAt(index) & 0xfc00) === 0xd800 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      count--;
      index++;
    }
  }
  return count;
}
