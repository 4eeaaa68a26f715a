/**
 * Longest template, in UTF-16 units: all texts of an object together. Ten times the longest that are published; parsing
 * takes half a second at most.
 */
export const MAX_TEMPLATE_LENGTH = 500_000;

/** Most steps of a rendering. A step takes well below a microsecond, so this is less than a second. */
export const MAX_STEPS = 1_000_000;

/** Most characters that a rendering makes, intermediate texts included: several times the largest object. */
export const MAX_CHARACTERS = 8_000_000;

/** Most objects and lists that a rendering looks up. Published policies look up fewer than ten. */
export const MAX_LOOKUPS = 1000;

/** Longest list that a function makes. A cluster has 5,000 nodes at most, and 10,000 namespaces. */
export const MAX_LIST_LENGTH = 10_000;

/** Longest regular expression: programs of longer ones take too much memory. */
export const MAX_PATTERN_LENGTH = 1000;

/** Most objects of the same list that a look-up returns; longer lists do not fit a rendering's steps. */
export const MAX_LISTED_OBJECTS = 10_000;
