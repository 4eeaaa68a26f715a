/**
 * Bounds of what one call makes. API servers build a result first and count its cost after; here a result that no
 * budget could pay is not begun.
 */

/**
 * UTF-16 units of a string that a call makes: looking at it once costs a tenth of that, so 10,000,000 cost as much as an
 * API server grants one expression.
 */
export const MAX_TEXT_LENGTH = 10_000_000;

/**
 * UTF-16 units of a formatted string, whose cost does not depend on its length: far beyond what a message of a policy or
 * an annotation may have.
 */
export const MAX_FORMATTED_LENGTH = 1_000_000;

/** Elements of a list that a call makes: what `lists.range` is limited to in API servers. */
export const MAX_LIST_LENGTH = 1_000_000;

/**
 * Comparisons of a call that compares every element with every other: API servers count each as cost, and grant one
 * expression 1,000,000.
 */
export const MAX_COMPARISONS = 1_000_000;

/** Values that are looked at for a cost before it is called infinite: sharing can make small values endless to walk. */
export const MAX_VISITED = 1_000_000;

/**
 * Finding all matches looks at the rest of a text again for each of them, in the worst case: so many characters. Takes
 * about 200 ms at the 100 ns a character of an automaton with some states.
 */
export const MAX_FIND_WORK = 2_000_000;

/** Digits after the point in a formatted double, where they are all written: a double has 1,074 at most. */
export const MAX_PRECISION = 1_100;

/** What API servers take for a width in a format string. */
export const MAX_WIDTH = 1_000_000;

/** Nesting of lists and maps in a formatted string: writing them is recursive, a few frames of the stack a level. */
export const MAX_DEPTH = 1_000;
