// Tables in the layout of kubectl: upper-case headers, columns as wide as their widest cell, three spaces between.
import { stripVTControlCharacters } from 'node:util';
import { shortened, shortenedInside, withoutControls } from '../values/index.ts';

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
 * @param maxWidth cells are shortened so that lines fit, except those of the first column, which are for copying; columns that do
 * not fit then are left out
 */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], maxWidth = Infinity): string {
  const all = columns.map(({ header, cell }) => [header, ...rows.map((row) => cell(row))]);
  const shown = withoutExcess(all, maxWidth);
  const cells = (shown[0] ?? []).map((_, row) => shown.map((column) => column[row] ?? ''));
  const widths = fitted(shown.map(widest), maxWidth);
  return cells
    .map((line) =>
      line
        .map((cell, index) => padded(cell, widths[index] ?? 0))
        .join(' '.repeat(GAP))
        .trimEnd(),
    )
    .join('\n');
}

/** The text for a first column that nobody copies, in half of the width, so that the other columns are not left out. */
export function firstCell(text: string, maxWidth = Infinity): string {
  return shortenedInside(text, Math.floor(maxWidth / 2));
}

/** The lines of a table below its header. */
export function withoutHeader(text: string): string {
  return text.slice(text.indexOf('\n') + 1);
}

/**
 * The columns that fit when their cells are as short as possible. Those that have the same cell in every row are left out first,
 * because they distinguish nothing; otherwise the last ones. The first and the last column stay.
 */
function withoutExcess(columns: readonly (readonly string[])[], maxWidth: number): readonly (readonly string[])[] {
  let shown = columns;
  while (shown.length > 2 && leastWidth(shown) > maxWidth) {
    const inner = shown.slice(1, -1);
    const removed = inner.findLast(([, ...cells]) => new Set(cells).size <= 1) ?? inner.at(-1);
    shown = shown.filter((column) => column !== removed);
  }
  return shown;
}

/** The width of lines whose cells are as short as possible. */
function leastWidth([first = [], ...others]: readonly (readonly string[])[]): number {
  return others.reduce((sum, column) => sum + GAP + Math.min(widest(column), MIN_COLUMN_WIDTH), widest(first));
}

function widest(cells: readonly string[]): number {
  return Math.max(...cells.map(width));
}

/** Takes from the widest column after the first one until the sum fits, or no column can be narrower. */
function fitted(widths: readonly number[], maxWidth: number): readonly number[] {
  const [first = 0, ...others] = widths;
  let excess = first + others.reduce((sum, one) => sum + GAP + one, 0) - maxWidth;
  while (excess > 0) {
    const most = Math.max(...others);
    if (most <= MIN_COLUMN_WIDTH) {
      break;
    }
    others[others.indexOf(most)] = most - 1;
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
  return withoutControls(stripVTControlCharacters(text));
}

/** Untrusted text for a terminal on one line, without control characters. */
export function oneLine(text: string, maxLength = Infinity): string {
  const clean = withoutControls(stripVTControlCharacters(text).replaceAll(/\s+/g, ' ')).trim();
  return shortened(clean, maxLength);
}
