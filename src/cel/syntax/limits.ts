/** Longest expression, in code points: what cel-go's parser accepts unless told otherwise, as API servers do. */
export const MAX_EXPRESSION_CODE_POINTS = 100_000;

/**
 * How deep expressions may nest, as in cel-go. Counted twice there and here: expressions within brackets of any kind, and
 * operators, selections, indexes and method calls on each other.
 */
export const MAX_NESTING = 250;

/** Syntax errors after which parsing ends, as in cel-go. */
export const MAX_ISSUES = 100;

/**
 * Nodes that one expression may expand to. Macros such as `optMap` copy their receiver, so a chain of them doubles with
 * each link; cel-go has no such limit. An expression of the longest text without macros stays below.
 */
export const MAX_NODES = 150_000;

/** Longest line that errors show, in code points, as in cel-go. */
export const MAX_EXCERPT_LENGTH = 16_384;
