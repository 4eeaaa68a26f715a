import type { Delimiters } from '../../go/templates/index.ts';

// Upstream changes the text of a template before it is parsed. Only the text that the author wrote is changed here, never a
// value. Each function takes linear time.

/** Functions whose result is no text: their action stands without quotes. */
const TYPED = /\|\s*(?:toInt|toBool|toLiteral)\b|\bcopy(?:ConfigMap|Secret)Data\b/;

/** Functions whose text is a value in YAML. */
export const LITERAL_FUNCTIONS: ReadonlySet<string | undefined> = new Set([
  'toLiteral',
  'copyConfigMapData',
  'copySecretData',
]);

/** Whether a text is one line of nothing but actions that make a value of another type. A block scalar ends with a line break. */
export function isTypedText(text: string, { left, right }: Delimiters): boolean {
  const trimmed = text.trim();
  const isOneLine = !text.replace(/\n$/, '').includes('\n');
  return isOneLine && trimmed.startsWith(left) && trimmed.endsWith(right) && TYPED.test(trimmed);
}

/** The start of an action, or `autoindent` at its end. */
const INDENTED = /\{\{|\|[ ]*autoindent(?=[ ]*-?(?:hub)?\}\})/g;

/** Gives each `autoindent` the number of spaces before its action, as operand. */
export function withIndents(text: string): string {
  let open = 0;
  return text.includes('autoindent')
    ? text.replace(INDENTED, (found, at: number) => {
        if (found === '{{') {
          open = at;
          return found;
        }
        return `${found} ${spacesBefore(text, open)}`;
      })
    : text;
}

function spacesBefore(text: string, end: number): number {
  const last = /['"]/.test(text.charAt(end - 1)) ? end - 1 : end;
  let start = last;
  while (text.charAt(start - 1) === ' ') {
    start -= 1;
  }
  return last - start;
}

/**
 * Removes what makes a text of the value of actions, from each line that has nothing but such actions after a key: single
 * quotes (`port: '{{ "80" | toInt }}'`), and a block scalar of one line.
 */
export function withoutQuotes(text: string, delimiters: Delimiters): string {
  if (!TYPED.test(text)) {
    return text;
  }
  const lines = text.split('\n');
  const result: string[] = [];
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? '';
    const action = BLOCK_START.test(line) ? actionOfBlock(lines, index + 1, delimiters) : undefined;
    index += action === undefined ? 0 : 1;
    result.push(action === undefined ? lineWithoutQuotes(line, delimiters) : line.replace(BLOCK_START, `: ${action}`));
  }
  return result.join('\n');
}

/** A block scalar of one line without the quotes around its actions, which are text there. */
export function unquotedBlock(text: string, delimiters: Delimiters): string {
  const inner = /^'(.*)'\n$/.exec(text)?.[1] ?? '';
  return isTypedText(inner, delimiters) ? untrimmed(inner, delimiters) : text;
}

const BLOCK_START = /:[ \t]+[|>]-?[ \t]*$/;
const QUOTED = /(:[ \t]+)'((?:[^']|'')*)'/g;

/** The actions of a block that has no other line; undefined if it has, or is anything else. */
function actionOfBlock(lines: readonly string[], start: number, delimiters: Delimiters): string | undefined {
  const line = lines[start] ?? '';
  const text = unquotedBlock(`${line.trim()}\n`, delimiters).trim();
  if (!isTypedText(text, delimiters)) {
    return undefined;
  }
  const next = lines.slice(start + 1).find((one) => one.trim() !== '');
  return next === undefined || indentOf(next) < indentOf(line) ? untrimmed(text, delimiters) : undefined;
}

function lineWithoutQuotes(line: string, delimiters: Delimiters): string {
  return line.replace(QUOTED, (quoted: string, key: string, text: string) =>
    isTypedText(text, delimiters) ? `${key}${untrimmed(text.trim(), delimiters)}` : quoted,
  );
}

/** Actions that trim no text around them: beside the quotes there was none, and without them there is the rest of the document. */
function untrimmed(text: string, { left, right }: Delimiters): string {
  const trimmed = text.trim();
  const start = trimmed.startsWith(`${left}- `) ? `${left}${trimmed.slice(left.length + 1)}` : trimmed;
  return start.endsWith(` -${right}`) ? `${start.slice(0, -right.length - 1)}${right}` : start;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
