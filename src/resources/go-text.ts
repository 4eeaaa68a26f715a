// Values as Go prints them, for messages that have to be those of API servers.

const SHORT_ESCAPES: ReadonlyMap<string, string> = new Map([
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

const UNPRINTABLE = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** Text in double quotes (`%q`, strconv.Quote). */
export function quoteText(text: string): string {
  return `"${text.toWellFormed().replaceAll(UNPRINTABLE, escapeCharacter)}"`;
}

function escapeCharacter(character: string): string {
  const short = SHORT_ESCAPES.get(character);
  if (short !== undefined) {
    return short;
  }
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x80) {
    return `\\x${code.toString(16).padStart(2, '0')}`;
  }
  return code < 0x1_00_00 ? `\\u${code.toString(16).padStart(4, '0')}` : `\\U${code.toString(16).padStart(8, '0')}`;
}

/** A number as `%v` prints it: with an exponent below 1e-4 and from 1e21 on, which has two digits at least. */
export function numberText(value: number): string {
  const small = value !== 0 && Math.abs(value) < 1e-4;
  const text = small ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/u, 'e$10$2');
}

/** What `json.Marshal` escapes beyond what JSON does. */
const HTML_ESCAPED = /[<>&\u2028\u2029]/gu;

/** JSON as `json.Marshal` writes it: keys in order, no space, and nothing that HTML would read as markup. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value, (_key, part: unknown) => (isPlainObject(part) ? sorted(part) : part)) ?? 'null';
  return text.replaceAll(HTML_ESCAPED, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object with its keys in the order of their bytes. Without a prototype, so that `__proto__` stays a key. */
function sorted(object: Readonly<Record<string, unknown>>): object {
  const result = Object.create(null) as Record<string, unknown>;
  for (const key of Object.keys(object).toSorted(compareBytes)) {
    result[key] = object[key];
  }
  return result;
}

/** The order of Go's strings: by their UTF-8, which is that of code points. */
export function compareBytes(left: string, right: string): number {
  if (left === right) {
    return 0;
  }
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}
