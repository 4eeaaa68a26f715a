/** From this length on, looking for surrogates first is faster: in most strings the engine knows at once. */
const LONG = 20;
const LEADING_SURROGATE = /[\ud800-\udbff]/;

/** How many code points a string has; a surrogate without its partner counts as one. */
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
