export { BoundedEvaluation, MAX_BOUNDED_WORK } from './bounded-evaluation.ts';
export type { BoundedNames } from './bounded-evaluation.ts';
export { parseBounded } from './bounded-expression.ts';
export type { BoundedExpression } from './bounded-expression.ts';
