// Tables of reports in Markdown, for descriptions of pull requests.
import type { Column } from './table.ts';

/** Empty without rows. */
export function markdownTable<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
  if (rows.length === 0) {
    return '';
  }
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |\n`;
  const head = line(columns.map(({ header }) => header.toLowerCase())) + `|${'---|'.repeat(columns.length)}\n`;
  return head + rows.map((row) => line(columns.map(({ cell }) => markdownText(cell(row))))).join('');
}

/** A text that Markdown shows as it is. */
export function markdownText(text: string): string {
  return text.replaceAll(/[\\|<>`*_[\]]/g, String.raw`\$&`);
}
