/**
 * Function names of operators, as in the CEL specification
 * (https://github.com/google/cel-spec/blob/master/doc/langdef.md).
 */
export const Operator = {
  Conditional: '_?_:_',
  LogicalAnd: '_&&_',
  LogicalOr: '_||_',
  LogicalNot: '!_',
  Equals: '_==_',
  NotEquals: '_!=_',
  Less: '_<_',
  LessEquals: '_<=_',
  Greater: '_>_',
  GreaterEquals: '_>=_',
  In: '@in',
  Add: '_+_',
  Subtract: '_-_',
  Multiply: '_*_',
  Divide: '_/_',
  Modulo: '_%_',
  Negate: '-_',
  Index: '_[_]',
  OptionalIndex: '_[?_]',
  OptionalSelect: '_?._',
  NotStrictlyFalse: '@not_strictly_false',
} as const;

/** The accumulator variable of macros. Expressions cannot spell this name. */
export const ACCUMULATOR = '@result';

/** The accumulator's name in older versions of cel-go, which iteration variables still must not have. */
export const LEGACY_ACCUMULATOR = '__result__';

/** The iteration variable of comprehensions that only bind a name. */
export const UNUSED_VARIABLE = '#unused';

/** Words that cannot name variables or functions. Fields may have these names. */
export const RESERVED_WORDS: ReadonlySet<string> = new Set([
  'as',
  'break',
  'const',
  'continue',
  'else',
  'false',
  'for',
  'function',
  'if',
  'import',
  'in',
  'let',
  'loop',
  'package',
  'namespace',
  'null',
  'return',
  'true',
  'var',
  'void',
  'while',
]);

/** Whether expressions can name a variable so. */
export function isIdentifier(name: string): boolean {
  return /^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) && !RESERVED_WORDS.has(name);
}
