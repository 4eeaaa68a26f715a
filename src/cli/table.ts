// Tables in the layout of kubectl: upper-case headers, columns as wide as their widest cell, three spaces between.
import { stripVTControlCharacters } from 'node:util';
import { shortened } from '../values/index.ts';

interface Column<Row> {
  readonly header: string;
  readonly cell: (row: Row) => string;
}

/** The rows as lines below a header. Cells must be free of control characters: see {@link oneLine}. */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  const cells = [columns.map(({ header }) => header), ...rows.map((row) => columns.map(({ cell }) => cell(row)))];
  const widths = columns.map((_, index) => Math.max(...cells.map((line) => width(line[index] ?? ''))));
  return cells
    .map((line) =>
      line
        .map((cell, index) => cell + ' '.repeat((widths[index] ?? 0) - width(cell)))
        .join('   ')
        .trimEnd(),
    )
    .join('\n');
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
