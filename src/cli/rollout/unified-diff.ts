import { styled } from '../../values/index.ts';
import { diffHunks } from '../diff-hunks.ts';
import { manyLines } from '../table.ts';

interface NamedText {
  /** The name in the header line. */
  readonly name: string;
  readonly text: string;
}

/** The difference in the format of `diff -u`, each line with a line break; empty when the texts are equal. */
export function unifiedDiff(from: NamedText, to: NamedText): string {
  if (from.text === to.text) {
    return '';
  }
  const lines = diffHunks(manyLines(from.text), manyLines(to.text)).flatMap((hunk) => [
    styled('cyan', `@@ -${range(hunk.oldStart, hunk.oldLines)} +${range(hunk.newStart, hunk.newLines)} @@`),
    ...hunk.lines.map(styledLine),
  ]);
  const heads = [styled('bold', `--- ${from.name}`), styled('bold', `+++ ${to.name}`)];
  return [...heads, ...lines].map((line) => `${line}\n`).join('');
}

/** The range of a hunk; an empty one has the number of the line before it. */
function range(first: number, count: number): string {
  return count === 1 ? String(first) : `${count === 0 ? first - 1 : first},${count}`;
}

function styledLine(line: string): string {
  return line.startsWith(' ') ? line : styled(line.startsWith('+') ? 'green' : 'red', line);
}
