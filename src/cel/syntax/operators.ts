/** The names of the functions that operators and the syntax stand for, as the specification has them. */
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

/** The variable that macros accumulate in: no name that an expression can spell. */
export const ACCUMULATOR = '@result';

/** The name that older versions of cel-go gave it: variables of macros still must not be named so. */
export const LEGACY_ACCUMULATOR = '__result__';

/** The variable of comprehensions that only bind a name. */
export const UNUSED_VARIABLE = '#unused';

/** Words that are no names of variables or functions; fields may be named so. */
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
