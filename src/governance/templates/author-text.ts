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

/** Whether a text is nothing but actions that make a value of another type. */
export function isTypedText(text: string, { left, right }: Delimiters): boolean {
  const trimmed = text.trim();
  return trimmed.startsWith(left) && trimmed.endsWith(right) && TYPED.test(trimmed);
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

/** Removes the single quotes around the actions of a line that make a value of another type: `port: '{{ "80" | toInt }}'`. */
export function withoutQuotes(text: string): string {
  return TYPED.test(text) ? text.split('\n').map(lineWithoutQuotes).join('\n') : text;
}

const QUOTED_START = /:[ \t]+'[ \t]*(?=\{\{)/;
const QUOTED_END = /^[ \t]*'/;

function lineWithoutQuotes(line: string): string {
  const open = QUOTED_START.exec(line);
  const end = line.lastIndexOf('}}') + 2;
  if (open === null || end < open.index) {
    return line;
  }
  const action = line.slice(open.index + open[0].length, end);
  const rest = line.slice(end);
  return TYPED.test(action) && QUOTED_END.test(rest)
    ? `${line.slice(0, open.index)}: ${action}${rest.replace(QUOTED_END, '')}`
    : line;
}
