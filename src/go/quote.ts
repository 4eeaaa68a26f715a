/** Characters with a short escape, in Go as in CEL. */
export const SHORT_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
  ['"', '\\"'],
]);

/** Go prints letters, marks, numbers, punctuation, symbols and the ASCII space (`unicode.IsPrint`). */
const ESCAPED = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;
const ESCAPED_IN_ASCII = /["\\]|[^ -~]/gu;

/** A string in double quotes, escaped as `strconv.Quote` and `%q` do; lone surrogates become U+FFFD. */
export function quote(text: string): string {
  return `"${text.toWellFormed().replace(ESCAPED, escapeCharacter)}"`;
}

/** The same in ASCII only, as `strconv.QuoteToASCII` and `%+q` do. */
export function quoteToAscii(text: string): string {
  return `"${text.toWellFormed().replace(ESCAPED_IN_ASCII, escapeCharacter)}"`;
}

/** One character in single quotes: `strconv.QuoteRune`, or `strconv.QuoteRuneToASCII`. */
export function quoteRune(rune: string, isAscii = false): string {
  switch (rune) {
    case "'":
      return "'\\''";
    case '"':
      return `'"'`;
    default:
      return `'${(isAscii ? quoteToAscii(rune) : quote(rune)).slice(1, -1)}'`;
  }
}

/** Whether a character is printed as it is: `unicode.IsPrint`. */
export function isPrint(rune: string): boolean {
  return /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u.test(rune);
}

/** Whether `%#q` writes a string between backquotes: no backquote, and no control character but tabs. */
export function canBackquote(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- `strconv.CanBackquote` refuses these
  return !/[\u0000-\u0008\u000a-\u001f`\u007f\ufeff]/.test(text);
}

/** Quotes bytes, given as a string of one unit each; a byte that is not UTF-8 becomes `\xff`. */
export function quoteBytes(binary: string): string {
  const text = fromBinary(binary);
  if (toBinary(text) === binary) {
    return quote(text);
  }
  const parts: string[] = ['"'];
  for (let index = 0; index < binary.length;) {
    const length = utf8Length(binary, index);
    if (length === 0) {
      parts.push(`\\x${hex(binary.charCodeAt(index), 2)}`);
    } else {
      parts.push(quote(fromBinary(binary.slice(index, index + length))).slice(1, -1));
    }
    index += Math.max(1, length);
  }
  parts.push('"');
  return parts.join('');
}

/** The UTF-8 of a text as a string of one unit per byte, for algorithms that index Go strings. */
export function toBinary(text: string): string {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** The text of UTF-8 bytes, one unit each; invalid bytes become U+FFFD. */
export function fromBinary(binary: string): string {
  return isAscii(binary) ? binary : Buffer.from(binary, 'latin1').toString('utf8');
}

function isAscii(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    if (text.charCodeAt(index) >= 0x80) {
      return false;
    }
  }
  return true;
}

function escapeCharacter(character: string): string {
  const short = SHORT_ESCAPES.get(character);
  if (short !== undefined) {
    return short;
  }
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) {
    return `\\x${hex(code, 2)}`;
  }
  return code < 0x10000 ? `\\u${hex(code, 4)}` : `\\U${hex(code, 8)}`;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}

/** Bytes of the code point at an index; 0 when there is no valid one. */
function utf8Length(binary: string, index: number): number {
  const first = binary.charCodeAt(index);
  if (first < 0x80) {
    return 1;
  }
  const length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  const decoded = fromBinary(binary.slice(index, index + length));
  const isReplaced = decoded === '\ufffd' && binary.slice(index, index + length) !== '\u00ef\u00bf\u00bd';
  return first < 0xc2 || first > 0xf4 || Array.from(decoded).length !== 1 || isReplaced ? 0 : length;
}
