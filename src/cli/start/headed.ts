import { styled } from '../../values/index.ts';

/** Lines of bold headings and texts, aligned. */
export function headed(rows: readonly (readonly [heading: string, text: string])[]): string {
  const width = Math.max(...rows.map(([heading]) => heading.length));
  return rows
    .map(([heading, text]) => `${styled('bold', heading)}${' '.repeat(width - heading.length)}   ${text}`)
    .join('\n');
}
