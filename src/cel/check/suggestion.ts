/** Maximum length of a name that is compared with others. */
const MAX_COMPARED_LENGTH = 64;

/** Maximum number of compared names, to limit the time. */
const MAX_COMPARED_NAMES = 5_000;

/** A hint with the candidate most similar to a misspelled name; empty if none is similar. */
export function didYouMean(name: string, candidates: Iterable<string>): readonly string[] {
  const nearest = nearestName(name, candidates);
  return nearest === undefined ? [] : [`did you mean '${nearest}'?`];
}

/** The candidate with the smallest edit distance, if it is at most a third of the name's length. */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length > MAX_COMPARED_LENGTH) {
    return undefined;
  }
  const lower = name.toLowerCase();
  let nearest: string | undefined;
  let least = Math.max(1, Math.floor(name.length / 3)) + 1;
  let compared = 0;
  for (const candidate of candidates) {
    compared += 1;
    if (compared > MAX_COMPARED_NAMES) {
      break;
    }
    if (candidate === name || Math.abs(candidate.length - name.length) >= least) {
      continue;
    }
    const distance = editDistance(lower, candidate.toLowerCase());
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

/** Number of insertions, deletions, replacements and swaps of neighbors between two strings. */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      let distance = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]) {
        distance = Math.min(distance, (beforeLast[column - 2] ?? 0) + 1);
      }
      current.push(distance);
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}
