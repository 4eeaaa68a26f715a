// Tables in the layout of kubectl: upper-case headers, columns as wide as their widest cell, three spaces between.
import { stripVTControlCharacters } from 'node:util';
import { shortened, shortenedInside, withoutControls } from '../values/index.ts';

/** A column of a table. */
export interface Column<Row> {
  readonly header: string;
  readonly cell: (row: Row) => string;
  /**
   * Whether the cells name the object of the row: such columns are never left out. `whole`: for copying, never shortened.
   * `distinct`: long names lose characters inside, as long as they differ. Default: `whole` for the first column only.
   */
  readonly name?: 'whole' | 'distinct' | undefined;
}

interface Cells {
  /** The header, then a cell for each row. */
  readonly cells: readonly string[];
  readonly name: 'whole' | 'distinct' | undefined;
  /** Position among the columns. */
  readonly index: number;
}

/** Width of lines that are not printed on a terminal. Characters. */
const DEFAULT_WIDTH = 80;
/** Width of the space between columns. Characters. */
const GAP = 3;
/** Narrowest column of sentences or references that still tells something: two or three words. Characters. */
const MIN_TEXT_WIDTH = 16;
/** Longest cells of a column of single words, as reasons of conditions are. Characters. */
const LONGEST_WORD = 24;
/** Columns that say in one word how an object is. In narrow tables they come before all others. */
const STATE_HEADER = /^(PHASE|STATUS|STATE|RESULT|ACCEPTED|PRESENT|READY|COMPLIANCE STATE)$/;

/** The width of the terminal, or the usual one. */
export function terminalWidth(): number {
  return process.stdout.columns ?? DEFAULT_WIDTH;
}

/**
 * The rows as lines below a header. Cells must be free of control characters: see {@link oneLine}.
 * @param maxWidth lines fit into it, unless names alone are longer: sentences end after a whole word, long references lose
 * characters inside, and columns that do not fit then are left out
 */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], maxWidth = Infinity): string {
  const all = columns.map(({ header, cell, name }, index): Cells => ({
    cells: [header, ...rows.map((row) => cell(row))],
    name: name ?? (index === 0 ? 'whole' : undefined),
    index,
  }));
  const shown = fittingColumns(all, maxWidth);
  const widths = fittingWidths(shown, maxWidth);
  const fitted = shown.map(({ cells, name }, index) =>
    padded(cells.map((cell) => shortenedCell(cell, widths[index] ?? 0, name !== undefined))),
  );
  return ['', ...rows]
    .map((_, row) =>
      fitted
        .map((cells) => cells[row])
        .join(' '.repeat(GAP))
        .trimEnd(),
    )
    .join('\n');
}

/** The lines of a table below its header. */
export function withoutHeader(text: string): string {
  return text.slice(text.indexOf('\n') + 1);
}

/** The columns that fit with their least widths, in their order: the most important ones first, then each that still fits. */
function fittingColumns(columns: readonly Cells[], maxWidth: number): readonly Cells[] {
  const shown = new Set<Cells>();
  let left = maxWidth + GAP;
  for (const column of columns.toSorted((a, b) => rank(a) - rank(b) || a.index - b.index)) {
    const needed = leastWidth(column) + GAP;
    if (column.name !== undefined || needed <= left) {
      shown.add(column);
      left -= needed;
    }
  }
  return columns.filter((column) => shown.has(column));
}

/** Importance of a column in a narrow table: names, states, what differs between rows, sentences, what is the same in all rows. */
function rank(column: Cells): number {
  const [header = '', ...cells] = column.cells;
  if (column.name !== undefined) {
    return 0;
  }
  if (STATE_HEADER.test(header)) {
    return 1;
  }
  const isSame = cells.length > 1 && new Set(cells).size === 1;
  return isSame ? 4 : isLong(column) ? 3 : 2;
}

/** Takes from the widest column that may be shortened until all fit. */
function fittingWidths(columns: readonly Cells[], maxWidth: number): readonly number[] {
  const widths = columns.map(widest);
  const least = columns.map(leastWidth);
  const sum = widths.reduce((total, one) => total + one + GAP, -GAP);
  for (let excess = sum - maxWidth; excess > 0; excess -= 1) {
    const spare = widths.map((one, index) => (one > (least[index] ?? one) ? one : 0));
    const most = Math.max(...spare);
    if (most === 0) {
      break;
    }
    widths[spare.indexOf(most)] = most - 1;
  }
  return widths;
}

function leastWidth(column: Cells): number {
  return column.name === 'distinct' ? distinctWidth(column) : isLong(column) ? MIN_TEXT_WIDTH : widest(column);
}

/** The least width in which different names stay different. */
function distinctWidth(column: Cells): number {
  const names = [...new Set(column.cells)];
  let least = Math.min(LONGEST_WORD, widest(column));
  while (new Set(names.map((name) => shortenedInside(name, least))).size < names.length) {
    least += 1;
  }
  return least;
}

/** Whether a column has sentences or references, which tell something when they are shortened; single words do not. */
function isLong(column: Cells): boolean {
  return column.name === undefined && !STATE_HEADER.test(column.cells[0] ?? '') && widest(column) > LONGEST_WORD;
}

function widest({ cells }: Cells): number {
  return Math.max(...cells.map(width));
}

/** Cells of equal width. */
function padded(cells: readonly string[]): readonly string[] {
  const most = Math.max(...cells.map(width));
  return cells.map((cell) => cell + ' '.repeat(most - width(cell)));
}

/** A sentence up to the last word that fits; names and references without their middle, because they differ at their ends. */
function shortenedCell(cell: string, most: number, isName: boolean): string {
  if (width(cell) <= most) {
    return cell;
  }
  const text = stripVTControlCharacters(cell);
  const end = text.lastIndexOf(' ', most - 1);
  return isName || end < most / 2 ? shortenedInside(text, most) : `${text.slice(0, end).trimEnd()}…`;
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
