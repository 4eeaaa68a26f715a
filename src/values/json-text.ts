// Scanning JSON as text, before or instead of parsing it.

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Index after the string that opens at `open`, or the text's length when the string does not end. */
export function endOfJsonString(text: string, open: number): number {
  // By character, because most strings are short.
  for (let at = open + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      return at + 1;
    }
    if (code === BACKSLASH) {
      at++;
    }
  }
  return text.length;
}

/**
 * Whether more than `limit` brackets are open at once: JSON.parse has no limit, but recursive code on its result does. One
 * pass without recursion; the text need not be JSON.
 */
export function isNestedDeeper(text: string, limit: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfJsonString(text, at) - 1;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > limit) {
        return true;
      }
    } else if (code === 0x7d || code === 0x5d) {
      depth--;
    }
  }
  return false;
}
