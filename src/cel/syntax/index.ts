export { commentsOf } from './comments.ts';
export {
  BINDING_MACROS,
  LIST_MACROS,
  MATH_MACROS,
  OPTIONAL_FLAT_MACROS,
  OPTIONAL_MACROS,
  TWO_VARIABLE_MACROS,
} from './extension-macros.ts';
export { MAX_EXPRESSION_CODE_POINTS, MAX_ISSUES, MAX_NESTING } from './limits.ts';
export { MacroSet } from './macro.ts';
export type { Macro } from './macro.ts';
export { ACCUMULATOR, isIdentifier, Operator, RESERVED_WORDS } from './operators.ts';
export { parse } from './parser.ts';
export type { ParsedExpression, ParseOptions } from './parser.ts';
export { Source } from './source.ts';
export { STANDARD_MACROS } from './standard-macros.ts';
