import { styled } from '../../values/index.ts';
import { oneLine } from '../table.ts';

/** Lines of bold headings and texts, aligned: `Name:    text`. */
export function headedLines(rows: readonly (readonly [heading: string, text: string])[]): string {
  const width = Math.max(...rows.map(([heading]) => heading.length)) + 1;
  return rows.map(([heading, text]) => `${styled('bold', `${heading}:`.padEnd(width))}   ${oneLine(text)}`).join('\n');
}
