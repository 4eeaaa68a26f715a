// Differences between texts, line by line, as people read them.

/** Lines that are shown around each difference, as `diff -u` does. */
export const CONTEXT_LINES = 3;
/** Beyond this many comparisons two texts have so little in common that no difference helps; memory is 4 bytes each. */
const MAX_COMPARISONS = 4_000_000;

/** A line of a difference: in both texts, only in the first (expected), only in the second (what came), or left out. */
export interface DiffLine {
  readonly kind: 'same' | 'expected' | 'actual' | 'gap';
  readonly text: string;
}

/** The shortest difference between two texts, with some lines around each change. */
export function lineDiff(expected: string, actual: string): DiffLine[] {
  const lines = allLines(expected, actual);
  const isNear = nearChanges(lines);
  return lines.flatMap((line, index): DiffLine[] => {
    if (isNear[index] === 1) {
      return [line];
    }
    return index === 0 || isNear[index - 1] === 1 ? [{ kind: 'gap', text: '…' }] : [];
  });
}

/** All lines of both texts, by the shortest difference: none is left out. */
export function allLines(expected: string, actual: string): readonly DiffLine[] {
  const [a, b] = [expected.trimEnd().split('\n'), actual.trimEnd().split('\n')];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) {
    head++;
  }
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) {
    tail++;
  }
  const same = (text: string): DiffLine => ({ kind: 'same', text });
  return [
    ...a.slice(0, head).map(same),
    ...middle(a.slice(head, a.length - tail), b.slice(head, b.length - tail)),
    ...a.slice(a.length - tail).map(same),
  ];
}

function middle(a: readonly string[], b: readonly string[]): DiffLine[] {
  const width = b.length + 1;
  if ((a.length + 1) * width > MAX_COMPARISONS) {
    return [...a.map((text) => onlyExpected(text)), ...b.map((text) => onlyActual(text))];
  }
  // Longest common subsequence of the rest of both, from each pair of positions.
  const common = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let k = b.length - 1; k >= 0; k--) {
      const at = i * width + k;
      common[at] =
        a[i] === b[k] ? (common[at + width + 1] ?? 0) + 1 : Math.max(common[at + width] ?? 0, common[at + 1] ?? 0);
    }
  }
  const lines: DiffLine[] = [];
  let i = 0;
  let k = 0;
  while (i < a.length || k < b.length) {
    const [left, right] = [a[i], b[k]];
    const at = i * width + k;
    if (left !== undefined && left === right) {
      lines.push({ kind: 'same', text: left });
      i++;
      k++;
    } else if (left !== undefined && (right === undefined || (common[at + width] ?? 0) >= (common[at + 1] ?? 0))) {
      lines.push(onlyExpected(left));
      i++;
    } else {
      lines.push(onlyActual(right ?? ''));
      k++;
    }
  }
  return lines;
}

function onlyExpected(text: string): DiffLine {
  return { kind: 'expected', text };
}

function onlyActual(text: string): DiffLine {
  return { kind: 'actual', text };
}

/** 1 for each line that is a change, or near one. */
export function nearChanges(lines: readonly DiffLine[]): Uint8Array {
  const isNear = new Uint8Array(lines.length);
  for (const [index, { kind }] of lines.entries()) {
    if (kind !== 'same') {
      isNear.fill(1, Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1);
    }
  }
  return isNear;
}
