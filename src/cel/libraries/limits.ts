/**
 * Limits of the result of one call. API servers create a result before they count its cost; here, a result that exceeds
 * every budget is not created.
 */

/**
 * Maximum length of a string result in UTF-16 units: one traversal costs a tenth of it, so 10,000,000 cost as much as
 * one expression may in API servers.
 */
export const MAX_TEXT_LENGTH = 10_000_000;

/**
 * Maximum length of a formatted string in UTF-16 units. Its cost does not depend on its length; messages and
 * annotations of policies are far shorter.
 */
export const MAX_FORMATTED_LENGTH = 1_000_000;

/** Maximum length of a list result: the limit of `lists.range` in API servers. */
export const MAX_LIST_LENGTH = 1_000_000;

/**
 * Maximum comparisons of a call that compares all pairs of elements. API servers count 1 for each, and allow 1,000,000
 * per expression.
 */
export const MAX_COMPARISONS = 1_000_000;

/**
 * Maximum number of values visited to compute a cost, which is infinite beyond it: values that share contents can
 * take exponential time to traverse.
 */
export const MAX_VISITED = 1_000_000;

/**
 * Finding all matches may scan the rest of the text again for each match: the maximum number of scanned characters.
 * Takes about 200 ms at 100 ns per character of an automaton with a few states.
 */
export const MAX_FIND_WORK = 2_000_000;

/** Maximum width that API servers accept in a format string. */
export const MAX_WIDTH = 1_000_000;

/**
 * Maximum nesting of lists and maps in a formatted string: printing is recursive, with a few stack frames per level.
 */
export const MAX_DEPTH = 1_000;
