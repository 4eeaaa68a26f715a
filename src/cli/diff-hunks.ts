import { structuredPatch, type StructuredPatchHunk } from 'diff';

/** Unchanged lines around each change, as in `diff -u`. */
const CONTEXT_LINES = 3;
/** Texts with more changed lines are reported as replaced: the time for a shortest difference grows with the square. */
const MAX_CHANGED_LINES = 1_000;

/** The shortest difference between two texts as hunks, whose lines begin with ' ', '-' or '+'. */
export function diffHunks(from: string, to: string): readonly StructuredPatchHunk[] {
  const [oldText, newText] = [from, to].map((text) => `${text.trimEnd()}\n`) as [string, string];
  const options = { context: CONTEXT_LINES, maxEditLength: MAX_CHANGED_LINES };
  return structuredPatch('', '', oldText, newText, '', '', options)?.hunks ?? [replacement(oldText, newText)];
}

function replacement(oldText: string, newText: string): StructuredPatchHunk {
  const [oldLines, newLines] = [oldText, newText].map((text) => text.trimEnd().split('\n')) as [string[], string[]];
  return {
    oldStart: 1,
    oldLines: oldLines.length,
    newStart: 1,
    newLines: newLines.length,
    lines: [...oldLines.map((line) => `-${line}`), ...newLines.map((line) => `+${line}`)],
  };
}
