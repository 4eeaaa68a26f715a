import type { JsonObject, JsonValue } from './json-text.ts';

/** Settings that are expressions, or of no consequence. The others make policies ask the cluster. */
const KEYS: ReadonlySet<string> = new Set(['validations', 'variables', 'matchConditions', 'failurePolicy']);

/**
 * Macros and functions that make nothing larger than what they are given, and take no longer than that is large: with `[` and `{`
 * for nothing but literals, no value is larger than the request. Others build texts or lists, compile patterns, or ask.
 */
const FUNCTIONS: ReadonlySet<string> = new Set([
  'all',
  'bool',
  'contains',
  'endsWith',
  'exists',
  'exists_one',
  'filter',
  'has',
  'hasValue',
  'int',
  'or',
  'orValue',
  'size',
  'startsWith',
  'string',
  'uint',
  'value',
]);

/** Longest text that may be looked for within another: two long ones can take 10 ms. */
const MAX_PART = 64;

/** What would have to be read as the language's own lexer does: escapes, long strings, comments, quoted names. */
const OTHER_SYNTAX = /\\|'''|"""|\/\/|`/u;
const LITERAL = /'[^']*'|"[^"]*"/gu;
/** What stands for literals: these are looked at no further. */
const SHORT = "''";
const LONG = '""';
const CALL = /([A-Za-z_]\w*)\s*\(/gu;
/** A list of literals, or an index that is one; lists of anything else may hold one value many times. */
const LITERALS = /\[(?:\s|''|""|,|-|\b\d[\w.]*|\btrue\b|\bfalse\b|\bnull\b)*\]/gu;
const BRACKET = /[[{]/u;
const ASKING = /\b(?:authorizer|params|namespaceObject)\b/u;
const ANY_CONTAINS = /\bcontains\s*\(/u;

/**
 * Whether settings of `builtin:cel` hold nothing but expressions that ask nobody, and take a time that is bounded by the size of
 * the request, but for loops, which can be interrupted. Looks at their text only, which takes no time itself: where it says no they
 * may be as good. Says nothing of settings that are not valid.
 */
export function hasPlainExpressions(settings: JsonObject): boolean {
  return Object.entries(settings).every(([key, value]) => KEYS.has(key) && textsOf(value).every(isPlain));
}

function textsOf(value: JsonValue): readonly string[] {
  if (typeof value === 'string') {
    return [value];
  }
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap((one) => textsOf(one)) : [];
}

function isPlain(text: string): boolean {
  if (OTHER_SYNTAX.test(text)) {
    return false;
  }
  const code = text.replaceAll(LITERAL, (literal) => (literal.length <= MAX_PART + 2 ? SHORT : LONG));
  return (
    !ASKING.test(code) &&
    !BRACKET.test(code.replaceAll(LITERALS, '')) &&
    !ANY_CONTAINS.test(code.replaceAll(`.contains(${SHORT})`, '')) &&
    [...code.matchAll(CALL)].every(([, name = '']) => FUNCTIONS.has(name))
  );
}
