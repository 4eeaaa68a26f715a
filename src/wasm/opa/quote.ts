const NAMED_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\f', '\\f'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\v', '\\v'],
  ['\\', '\\\\'],
]);

const NOT_PRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]|\\/gu;
const NOT_PRINTABLE_ASCII = /[^ -~]|\\/gu;

/** Go's quoted form of a string (`strconv.Quote`): what is not printable is escaped. */
export function quote(text: string, delimiter = '"'): string {
  return delimiter + escape(text, NOT_PRINTABLE, delimiter) + delimiter;
}

/** Go's `strconv.QuoteToASCII`. */
export function quoteToAscii(text: string, delimiter = '"'): string {
  return delimiter + escape(text, NOT_PRINTABLE_ASCII, delimiter) + delimiter;
}

/** Whether Go would write the string between backquotes: one line, no control characters but tabs. */
export function canBackquote(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- Go looks for these
  return !/[\u0000-\u0008\u000a-\u001f`\u007f\ufeff]/.test(text);
}

function escape(text: string, special: RegExp, delimiter: string): string {
  return text.toWellFormed().replace(special, escapeCharacter).replaceAll(delimiter, `\\${delimiter}`);
}

function escapeCharacter(character: string): string {
  const named = NAMED_ESCAPES.get(character);
  if (named !== undefined) {
    return named;
  }
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) {
    return `\\x${code.toString(16).padStart(2, '0')}`;
  }
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
}
