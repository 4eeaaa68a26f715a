/** A place in a text, counted from 1 as editors do, with the line it is on. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
  /** The line (shortened) and a caret below the column. */
  readonly excerpt: string;
}

/** Excerpts go into statuses and logs, so long lines are cut. */
const MAX_EXCERPT_COLUMNS = 120;

/** Line, column and excerpt of `offset` (in UTF-16 units) in `text`. */
export function textPosition(text: string, offset: number): TextPosition {
  const at = Math.min(Math.max(offset, 0), text.length);
  let line = 1;
  let lineStart = 0;
  for (let newline = text.indexOf('\n'); newline !== -1 && newline < at; newline = text.indexOf('\n', newline + 1)) {
    line++;
    lineStart = newline + 1;
  }
  const lineEnd = text.indexOf('\n', lineStart);
  const column = at - lineStart;
  // A long line is cut around the column, so that the caret stays below the excerpt.
  const cut = Math.max(0, column - MAX_EXCERPT_COLUMNS / 2);
  const end = Math.min(lineEnd === -1 ? text.length : lineEnd, lineStart + cut + MAX_EXCERPT_COLUMNS);
  const shown = text
    .slice(lineStart + cut, end)
    .replaceAll('\t', ' ')
    .trimEnd();
  return { line, column: column + 1, excerpt: `${shown}\n${' '.repeat(column - cut)}^` };
}
