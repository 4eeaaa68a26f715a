/** Maximum length of an expression in code points: the default of cel-go's parser, which API servers use. */
export const MAX_EXPRESSION_CODE_POINTS = 100_000;

/**
 * Maximum nesting of expressions, as in cel-go. Two depths are limited separately: expressions in brackets of any kind,
 * and chains of operators, selections, indexes and method calls.
 */
export const MAX_NESTING = 250;

/** Syntax errors after which parsing stops, as in cel-go. */
export const MAX_ISSUES = 100;

/**
 * Maximum number of nodes of an expression after macro expansion. Macros such as `optMap` copy their receiver, so each
 * link of a chain doubles its size; cel-go has no such limit. An expression of maximum length without macros stays
 * below it.
 */
export const MAX_NODES = 150_000;

/** Maximum length of the line that an error shows, in code points, as in cel-go. */
export const MAX_EXCERPT_LENGTH = 16_384;
