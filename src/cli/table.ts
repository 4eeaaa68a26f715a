// Tables in the layout of kubectl: upper-case headers, columns as wide as their widest cell, three spaces between.
import { stripVTControlCharacters } from 'node:util';
import { shortened } from '../values/index.ts';

interface Column<Row> {
  readonly header: string;
  readonly cell: (row: Row) => string;
}

/** Width of lines that are not printed on a terminal. Characters. */
const DEFAULT_WIDTH = 80;
/** Width of the space between columns. Characters. */
const GAP = 3;
/** Narrowest column that still tells something. Characters. */
const MIN_COLUMN_WIDTH = 8;

/** The width of the terminal, or the usual one. */
export function terminalWidth(): number {
  return process.stdout.columns ?? DEFAULT_WIDTH;
}

/**
 * The rows as lines below a header. Cells must be free of control characters: see {@link oneLine}.
 * @param maxWidth cells are shortened so that lines fit, except those of the first column, which are for copying
 */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], maxWidth = Infinity): string {
  const cells = [columns.map(({ header }) => header), ...rows.map((row) => columns.map(({ cell }) => cell(row)))];
  const widths = fitted(
    columns.map((_, index) => Math.max(...cells.map((line) => width(line[index] ?? '')))),
    maxWidth,
  );
  return cells
    .map((line) =>
      line
        .map((cell, index) => padded(cell, widths[index] ?? 0))
        .join(' '.repeat(GAP))
        .trimEnd(),
    )
    .join('\n');
}

/** Takes from the widest column after the first one until the sum fits, or no column can be narrower. */
function fitted(widths: readonly number[], maxWidth: number): readonly number[] {
  const [first = 0, ...others] = widths;
  let excess = first + others.reduce((sum, one) => sum + GAP + one, 0) - maxWidth;
  while (excess > 0) {
    const widest = Math.max(...others);
    if (widest <= MIN_COLUMN_WIDTH) {
      break;
    }
    others[others.indexOf(widest)] = widest - 1;
    excess -= 1;
  }
  return [first, ...others];
}

function padded(cell: string, columnWidth: number): string {
  const shown = width(cell) <= columnWidth ? cell : shortened(stripVTControlCharacters(cell), columnWidth);
  return shown + ' '.repeat(Math.max(0, columnWidth - width(shown)));
}

function width(text: string): number {
  return stripVTControlCharacters(text).length;
}

/** Untrusted text for a terminal, without control characters other than line breaks and tabs. */
export function manyLines(text: string): string {
  return stripVTControlCharacters(text).replaceAll(/(?![\n\t])\p{Cc}/gu, '');
}

/** Untrusted text for a terminal on one line, without control characters. */
export function oneLine(text: string, maxLength = Infinity): string {
  const clean = stripVTControlCharacters(text)
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\p{Cc}/gu, '')
    .trim();
  return shortened(clean, maxLength);
}
