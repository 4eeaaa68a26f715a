// Differences as patches are written (`diff -u`).
import { styleText } from 'node:util';
import { allLines, type DiffLine, nearChanges } from '../line-diff.ts';
import { manyLines } from '../table.ts';

/** A text that is compared, and what its head line calls it. */
export interface NamedText {
  readonly name: string;
  readonly text: string;
}

const MARKS = { same: ' ', expected: '-', actual: '+', gap: ' ' } as const;

/** The lines of the difference, each with a line break; empty when the texts are the same. */
export function unifiedDiff(from: NamedText, to: NamedText): string {
  if (from.text === to.text) {
    return '';
  }
  const lines = allLines(manyLines(from.text), manyLines(to.text));
  const heads = [styleText('bold', `--- ${from.name}`), styleText('bold', `+++ ${to.name}`)];
  return [...heads, ...hunks(lines)].map((line) => `${line}\n`).join('');
}

function hunks(lines: readonly DiffLine[]): string[] {
  const isNear = nearChanges(lines);
  const result: string[] = [];
  /** The next line of both texts, from 1. */
  let left = 1;
  let right = 1;
  for (let begin = 0; begin < lines.length;) {
    let end = begin;
    while (end < lines.length && isNear[end] === isNear[begin]) {
      end += 1;
    }
    const part = lines.slice(begin, end);
    const [olds, news] = [part.filter(({ kind }) => kind !== 'actual'), part.filter(({ kind }) => kind !== 'expected')];
    if (isNear[begin] === 1) {
      result.push(styleText('cyan', `@@ -${range(left, olds.length)} +${range(right, news.length)} @@`));
      result.push(...part.map(lineText));
    }
    left += olds.length;
    right += news.length;
    begin = end;
  }
  return result;
}

/** A part without lines is named by the line before it. */
function range(first: number, count: number): string {
  return count === 1 ? String(first) : `${count === 0 ? first - 1 : first},${count}`;
}

function lineText({ kind, text }: DiffLine): string {
  const line = `${MARKS[kind]}${text}`;
  return kind === 'same' ? line : styleText(kind === 'actual' ? 'green' : 'red', line);
}
