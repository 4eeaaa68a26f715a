/** A typo is at most two edits away, and at most one in a word of three letters. */
const MAX_TYPO_DISTANCE = 2;
const SHORT_KEY_LENGTH = 3;
/** Longer than any key, so not compared. */
const MAX_KEY_LENGTH = 40;

/** The known key that `key` most likely means. */
export function nearestKey(key: string, known: readonly string[]): string | undefined {
  if (key.length > MAX_KEY_LENGTH) {
    return undefined;
  }
  const nearest = known
    .map((candidate) => ({ candidate, distance: editDistance(key.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0];
  const limit = key.length <= SHORT_KEY_LENGTH ? 1 : MAX_TYPO_DISTANCE;
  return nearest !== undefined && nearest.distance <= limit ? nearest.candidate : undefined;
}

/** A hint for an unknown key. */
export function unknownKeyHint(key: string, known: readonly string[]): string {
  const nearest = nearestKey(key, known);
  return nearest === undefined ? `expected one of ${known.join(', ')}` : `did you mean "${nearest}"?`;
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (a[row - 1] === b[column - 1] ? 0 : 1);
      current.push(Math.min(substitution, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[b.length] ?? 0;
}
