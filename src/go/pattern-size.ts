// The size of regular expressions (RE2) before they are compiled. Repetitions are copied when a pattern is compiled, so a
// pattern of 16 characters can take a thousand times as much time and memory as its text.

/** Longer patterns take too much memory. Kubernetes' own longest has fewer than 1,000 characters. */
export const MAX_PATTERN_LENGTH = 10_000;
/**
 * Maximum number of instructions of a pattern: 5 to 50 ms to compile, and 80 to 180 bytes each in memory. A full DNS name with all
 * its limits has less than 1,000.
 */
export const MAX_PATTERN_SIZE = 10_000;

/** Why a pattern is not compiled; undefined if it is small enough. */
export function patternProblem(pattern: string): string | undefined {
  if (pattern.length > MAX_PATTERN_LENGTH) {
    return `expression is longer than ${MAX_PATTERN_LENGTH} characters`;
  }
  const size = patternSize(pattern);
  return size > MAX_PATTERN_SIZE
    ? `expression is too large: expected at most ${MAX_PATTERN_SIZE} instructions, got up to ${size}; what is repeated counts each time`
    : undefined;
}

/** A group that is open, or the pattern itself. */
interface Group {
  /** Instructions of the group before its last item. */
  size: number;
  /** Instructions of the last item, which a repetition multiplies. */
  last: number;
}

/** `{2}`, `{2,}` and `{2,5}`; other braces are literal. */
const REPETITION = /\{(\d{1,4})(?:(,)(\d{0,4}))?\}/y;
/** `\pL`, `\p{Greek}`, `\x{10FFFF}`, `\123`, `\d`. */
const ESCAPE = /\\(?:[pPx]\{[^}]*\}|[0-7]{1,3}|x[0-9a-fA-F]{2}|[pP]?[^])/y;
/** The start of a group: `(`, `(?:`, `(?P<name>`, `(?i:`. */
const GROUP = /\((?:\?(?:P?<[^>]*>|[a-zA-Z-]*:?))?/y;
/** Flags for the rest of a group, which are no item of their own: `(?i)`. */
const FLAGS = /\(\?[a-zA-Z-]+\)/y;
/** A class, whose first character may be `]`. Classes like `[:alpha:]` in it end with `]` too. */
const CLASS = /\[\^?\]?(?:\[:\^?[a-z]+:\]|\\Q[^]*?\\E|\\[^]|[^\]\\])*\]/y;
/** Text without special characters. */
const QUOTED = /\\Q([^]*?)(?:\\E|$)/y;

/** The two ends of a group. */
const GROUP_INSTRUCTIONS = 2;
/** The choice whether to repeat once more; twice for what may be empty. */
const CHOICE_INSTRUCTIONS = 2;
/** The choice between two alternatives, of which one may be empty. */
const ALTERNATIVE_INSTRUCTIONS = 2;
/** The start, the end, and the failure of each pattern. */
const PATTERN_INSTRUCTIONS = 3;

/**
 * An upper bound of the number of instructions that a pattern is compiled to, from its text alone. Invalid patterns have some
 * number too.
 */
export function patternSize(pattern: string): number {
  const open: Group[] = [];
  let group: Group = { size: 0, last: 0 };
  const add = (size: number): void => {
    group.size += group.last;
    group.last = size;
  };
  for (let at = 0; at < pattern.length;) {
    const match = (token: RegExp): RegExpExecArray | null => {
      token.lastIndex = at;
      return token.exec(pattern);
    };
    let token: RegExpExecArray | null;
    if ((token = match(QUOTED)) !== null) {
      // Only the last character is repeated.
      group.size += group.last + (token[1]?.length ?? 0);
      group.last = 1;
    } else if ((token = match(ESCAPE) ?? match(CLASS)) !== null) {
      add(1);
    } else if ((token = match(FLAGS)) !== null) {
      // Nothing to add.
    } else if ((token = match(GROUP)) !== null) {
      open.push(group);
      group = { size: 0, last: 0 };
    } else if ((token = match(REPETITION)) !== null) {
      group.last = repeated(group.last, token);
    } else if (pattern[at] === ')') {
      // An empty group has an instruction that does nothing.
      const inner = Math.max(1, group.size + group.last) + GROUP_INSTRUCTIONS;
      group = open.pop() ?? { size: 0, last: 0 };
      add(inner);
    } else if ('*+?'.includes(pattern[at] ?? '')) {
      group.last += CHOICE_INSTRUCTIONS;
    } else {
      add(pattern[at] === '|' ? ALTERNATIVE_INSTRUCTIONS : 1);
    }
    at += token?.[0].length ?? 1;
  }
  return [...open, group].reduce((sum, { size, last }) => sum + size + last, PATTERN_INSTRUCTIONS);
}

function repeated(size: number, [, low = '', comma, high = '']: RegExpExecArray): number {
  const least = Number(low);
  if (comma === undefined) {
    return Math.max(1, least) * size;
  }
  const most = high === '' ? least + 1 : Number(high);
  return Math.max(1, least, most) * (size + CHOICE_INSTRUCTIONS);
}
