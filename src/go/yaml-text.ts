import type { JsonObject, JsonValue } from '../values/index.ts';
import { isJsonObject } from '../values/index.ts';
import { formatFloat } from './float.ts';
import { isIntegerNumber } from './value.ts';

/** Columns of one level. */
const INDENT = 2;
/** Text behind this column continues on the next line, after a space. */
const BEST_WIDTH = 80;

/** What Go's libraries write differently. */
export interface YamlStyle {
  /** Columns by which a list is indented below its key. */
  readonly listIndent: number;
  readonly foldsLines: boolean;
}

/** As `sigs.k8s.io/yaml` writes, which Kubernetes' programs use. */
const KUBERNETES_YAML: YamlStyle = { listIndent: 0, foldsLines: true };
/** As `gopkg.in/yaml.v3` writes with an indentation of two columns. */
export const YAML_V3: YamlStyle = { listIndent: INDENT, foldsLines: false };

/** JSON as Go programs write it in YAML: keys in natural order, and texts without quotes where possible. */
export function yamlText(value: JsonValue, style: YamlStyle = KUBERNETES_YAML): string {
  const writer = new YamlWriter(style);
  writer.root(value);
  return writer.text;
}

class YamlWriter {
  text = '';
  #column = 0;
  readonly #style: YamlStyle;

  constructor(style: YamlStyle) {
    this.#style = style;
  }

  root(value: JsonValue): void {
    if (isBlock(value)) {
      this.#block(value, 0);
    } else {
      this.#scalar(value, INDENT);
      this.#line();
    }
  }

  #put(text: string): void {
    this.text += text;
    this.#column += Array.from(text).length;
  }

  #line(indent = 0): void {
    this.text += `\n${' '.repeat(indent)}`;
    this.#column = indent;
  }

  /** Starts at the indentation of its first line, and ends with a line break. */
  #block(value: JsonObject | readonly JsonValue[], indent: number): void {
    const isList = Array.isArray(value);
    const entries: readonly (readonly [string | undefined, JsonValue])[] = isList
      ? (value as readonly JsonValue[]).map((item) => [undefined, item] as const)
      : Object.entries(value as JsonObject).sort(([left], [right]) => compareNaturally(left, right));
    for (const [index, [key, item]] of entries.entries()) {
      this.#put(index === 0 ? '' : ' '.repeat(indent));
      if (key === undefined) {
        this.#item(item, indent);
      } else {
        this.#entry(key, item, indent);
      }
    }
  }

  #item(value: JsonValue, indent: number): void {
    this.#put('- ');
    if (isBlock(value)) {
      this.#block(value, indent + INDENT);
    } else {
      this.#scalar(value, indent + INDENT);
      this.#line();
    }
  }

  #entry(key: string, value: JsonValue, indent: number): void {
    this.#put(keyText(key));
    this.#put(':');
    if (isBlock(value)) {
      const inner = indent + (Array.isArray(value) ? this.#style.listIndent : INDENT);
      this.#line(inner);
      this.#block(value, inner);
    } else {
      this.#put(' ');
      this.#scalar(value, indent + INDENT);
      this.#line();
    }
  }

  #scalar(value: JsonValue, indent: number): void {
    if (typeof value !== 'string') {
      this.#put(otherText(value));
      return;
    }
    const style = styleOf(value);
    switch (style) {
      case 'literal':
        this.#literal(value, indent);
        break;
      case 'plain':
        this.#folded(Array.from(value), indent, { quote: '', escape: (char) => char });
        break;
      case 'single':
        this.#folded(Array.from(value), indent, { quote: "'", escape: (char) => (char === "'" ? "''" : char) });
        break;
      case 'double':
        this.#folded(Array.from(value), indent, { quote: '"', escape: escaped });
        break;
      default:
        style satisfies never;
    }
  }

  /** A space behind the best width becomes a line break, except at the ends and beside other spaces. */
  #folded(
    chars: readonly string[],
    indent: number,
    { quote, escape }: { readonly quote: string; readonly escape: (char: string) => string },
  ): void {
    this.#put(quote);
    let isAfterSpace = false;
    for (const [index, char] of chars.entries()) {
      const isSpace = char === ' ';
      const isInside = quote === '' || (index > 0 && index < chars.length - 1);
      const isBeforeSpace = chars[index + 1] === ' ';
      const mayFold = this.#style.foldsLines && isSpace && !isAfterSpace && isInside && this.#column > BEST_WIDTH;
      if (mayFold && (quote === '"' || !isBeforeSpace)) {
        this.#line(indent);
        this.#put(isBeforeSpace ? '\\' : '');
      } else {
        this.#put(escape(char));
      }
      isAfterSpace = isSpace;
    }
    this.#put(quote);
  }

  #literal(value: string, indent: number): void {
    const hint = /^[ \n]/.test(value) ? String(INDENT) : '';
    const chomping = value.endsWith('\n') ? (/(^|\n)\n$/.test(value) ? '+' : '') : '-';
    this.#put(`|${hint}${chomping}`);
    const lines = (value.endsWith('\n') ? value.slice(0, -1) : value).split('\n');
    for (const line of lines) {
      this.#line(line === '' ? 0 : indent);
      this.#put(line);
    }
  }
}

function isBlock(value: JsonValue): value is JsonObject | JsonValue[] {
  return Array.isArray(value) ? value.length > 0 : isJsonObject(value) && Object.keys(value).length > 0;
}

function otherText(value: Exclude<JsonValue, string>): string {
  if (typeof value === 'number') {
    return isIntegerNumber(value) ? BigInt(value).toString() : formatFloat(value, 'g');
  }
  return value === null ? 'null' : typeof value === 'boolean' ? String(value) : Array.isArray(value) ? '[]' : '{}';
}

/** A key is on one line. */
function keyText(key: string): string {
  const style = styleOf(key);
  if (style === 'plain') {
    return key;
  }
  return style === 'single' ? `'${key.replaceAll("'", "''")}'` : yamlQuoted(key);
}

type Style = 'plain' | 'single' | 'double' | 'literal';

function styleOf(text: string): Style {
  if (UNPRINTABLE.test(text) || / \n/.test(text)) {
    return 'double';
  }
  if (text.includes('\n')) {
    return text.endsWith(' ') ? 'double' : 'literal';
  }
  if (isOtherType(text)) {
    return 'double';
  }
  return PLAIN_START.test(text) && !/: |:$| #| $/.test(text) ? 'plain' : 'single';
}

/** Characters that Go's libraries escape: the byte order mark, all beyond U+FFFF, and what YAML 1.1 takes for line breaks. */
const UNPRINTABLE = /[^\n\u0020-\u007e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]/u;
/** A start that is no indicator of YAML. */
const PLAIN_START = /^(?!---|\.\.\.|[?:-](?: |$))[^\s#,[\]{}&*!|>'"%@`]/u;

/** Whether YAML 1.1 would read the text as something else than a text. */
function isOtherType(text: string): boolean {
  return (
    WORDS.has(text) ||
    /^[-+]?(0[xX][0-9a-fA-F_]+|0[oO]?[0-7_]+|0[bB][01_]+|[0-9][0-9_]*)$/.test(text) ||
    /^[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?$/.test(text) ||
    /^[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?$/.test(text) ||
    TIMESTAMP.test(text)
  );
}

const TIMESTAMP =
  /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?(Z|[-+][0-9]{2}:[0-9]{2})| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(\.[0-9]+)?)?$/;

const WORDS: ReadonlySet<string> = new Set([
  '',
  '~',
  '<<',
  ...['y', 'yes', 'true', 'on', 'n', 'no', 'false', 'off', 'null'].flatMap((word) => [
    word,
    word.charAt(0).toUpperCase() + word.slice(1),
    word.toUpperCase(),
  ]),
  ...['.inf', '.Inf', '.INF'].flatMap((word) => [word, `+${word}`, `-${word}`]),
  '.nan',
  '.NaN',
  '.NAN',
]);

/** A text in double quotes, on one line. */
export function yamlQuoted(text: string): string {
  return `"${Array.from(text, escaped).join('')}"`;
}

/** Characters whose escape in double quotes is short. */
const YAML_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\0', '\\0'],
  ['\u0007', '\\a'],
  ['\b', '\\b'],
  ['\t', '\\t'],
  ['\n', '\\n'],
  ['\v', '\\v'],
  ['\f', '\\f'],
  ['\r', '\\r'],
  ['\u001b', '\\e'],
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\u0085', '\\N'],
  ['\u2028', '\\L'],
  ['\u2029', '\\P'],
]);

function escaped(char: string): string {
  const short = YAML_ESCAPES.get(char);
  if (short !== undefined || !UNPRINTABLE.test(char)) {
    return short ?? char;
  }
  const hex = (char.codePointAt(0) ?? 0).toString(16).toUpperCase();
  return hex.length <= 2
    ? `\\x${hex.padStart(2, '0')}`
    : hex.length <= 4
      ? `\\u${hex.padStart(4, '0')}`
      : `\\U${hex.padStart(8, '0')}`;
}

const isLetter = (char: string): boolean => /\p{L}/u.test(char);
const isDigit = (char: string | undefined): char is string => char !== undefined && /\p{Nd}/u.test(char);

/**
 * The order of keys: letters behind other characters, and numbers by their value.
 * @param lettersFollowDigits whether letters come first behind a digit, as since yaml.v3
 */
export function compareNaturally(left: string, right: string, lettersFollowDigits = false): number {
  const [before, after] = [Array.from(left), Array.from(right)];
  const at = before.findIndex((char, index) => char !== after[index]);
  const [one, other] = [before[at], after[at]];
  if (one === undefined || other === undefined) {
    return before.length - after.length;
  }
  if (isLetter(one) || isLetter(other)) {
    const areFirst = lettersFollowDigits && isDigit(before[at - 1]);
    return isLetter(one) && isLetter(other) ? codeOf(one) - codeOf(other) : isLetter(one) === areFirst ? -1 : 1;
  }
  const start = one === '0' || other === '0' ? leadingDigit(before, at) : 0n;
  const [first, second] = [numberAt(before, at, start), numberAt(after, at, start)];
  if (first.value !== second.value) {
    return first.value < second.value ? -1 : 1;
  }
  return first.end === second.end ? codeOf(one) - codeOf(other) : first.end - second.end;
}

function codeOf(char: string): number {
  return char.codePointAt(0) ?? 0;
}

/** 1 if the digits before an index are more than zeros: then a zero there counts. */
function leadingDigit(chars: readonly string[], end: number): bigint {
  for (let index = end - 1; isDigit(chars[index]); index--) {
    if (chars[index] !== '0') {
      return 1n;
    }
  }
  return 0n;
}

function numberAt(
  chars: readonly string[],
  start: number,
  value: bigint,
): { readonly value: bigint; readonly end: number } {
  let [sum, end] = [value, start];
  for (let char = chars[end]; isDigit(char); char = chars[++end]) {
    sum = BigInt.asIntN(64, sum * 10n + BigInt(codeOf(char) - codeOf('0')));
  }
  return { value: sum, end };
}
