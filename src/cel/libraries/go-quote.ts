/** All but letters, marks, numbers, punctuation and symbols, which Go prints as they are, with the ASCII space. */
const UNPRINTABLE = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** What Go, and CEL, write of characters that have an escape of their own. */
export const ESCAPES: ReadonlyMap<string, string> = new Map([
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

/** Quotes a string as Go's `%q` does: texts of errors and of formatted strings contain such. */
export function goQuote(text: string): string {
  return `"${text.toWellFormed().replaceAll(UNPRINTABLE, escapeCharacter)}"`;
}

/** Quotes bytes, given as a string of one unit each: those that are no UTF-8 are shown as `\xff`. */
export function goQuoteBytes(binary: string): string {
  const text = fromBinary(binary);
  if (toBinary(text) === binary) {
    return goQuote(text);
  }
  const parts: string[] = ['"'];
  for (let index = 0; index < binary.length;) {
    const length = utf8Length(binary, index);
    if (length === 0) {
      parts.push(`\\x${hex(binary.charCodeAt(index), 2)}`);
    } else {
      parts.push(goQuote(fromBinary(binary.slice(index, index + length))).slice(1, -1));
    }
    index += Math.max(1, length);
  }
  parts.push('"');
  return parts.join('');
}

/** The UTF-8 of a text as a string of one unit for each byte, for what Go does by bytes. */
export function toBinary(text: string): string {
  return isAscii(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** Back from bytes; what is no UTF-8 becomes U+FFFD. */
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
  const short = ESCAPES.get(character);
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

/** How many bytes the code point at an index has; 0 when there is no valid one. */
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
