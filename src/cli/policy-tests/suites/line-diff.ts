import { diffHunks } from '../../diff-hunks.ts';

/** A line of both texts or of one of them; a `gap` stands for omitted unchanged lines. */
export interface DiffLine {
  readonly kind: 'same' | 'expected' | 'actual' | 'gap';
  readonly text: string;
}

const KINDS: Readonly<Record<string, DiffLine['kind']>> = { ' ': 'same', '-': 'expected', '+': 'actual' };
const GAP: DiffLine = { kind: 'gap', text: '…' };

/** The shortest difference between two texts, with some lines around each change. */
export function lineDiff(expected: string, actual: string): DiffLine[] {
  const lines: DiffLine[] = [];
  /** The first line of the expected text that is not in `lines` yet, from 1. */
  let next = 1;
  for (const hunk of diffHunks(expected, actual)) {
    if (hunk.oldStart > next) {
      lines.push(GAP);
    }
    lines.push(...hunk.lines.map((line) => ({ kind: KINDS[line.charAt(0)] ?? 'same', text: line.slice(1) })));
    next = hunk.oldStart + hunk.oldLines;
  }
  return next > expected.trimEnd().split('\n').length ? lines : [...lines, GAP];
}
