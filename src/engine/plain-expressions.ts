import { isJsonObject } from './json-text.ts';
import type { JsonObject, JsonValue } from './json-text.ts';

/** Macros and functions that look at what there is, and make nothing of it. */
const FUNCTIONS: ReadonlySet<string> = new Set([
  'all',
  'contains',
  'endsWith',
  'exists',
  'exists_one',
  'has',
  'size',
  'startsWith',
]);

/** Names by which expressions ask the cluster. */
const ASKING: ReadonlySet<string> = new Set(['authorizer', 'namespaceObject', 'params']);

/** Longest text that may be looked for within another: two long ones can take 10 ms. */
const MAX_PART = 64;

/** What would have to be read as the language's own lexer does: escapes, long texts, comments, quoted names. */
const OTHER_SYNTAX = /\\|'''|"""|\/\/|`/u;
/** Texts, words, numbers, spaces; one character otherwise. Each begins in its own way, so that nothing is read twice. */
const TOKEN = /'[^'\n]*'|"[^"\n]*"|[A-Za-z_]\w*|\d\w*(?:\.\d\w*)?|\s+|[^]/gu;
const TEXT = /^['"]./u;
const WORD = /^[A-Za-z_]/u;
const NUMBER = /^\d/u;
/** Not among them: what joins or chooses values (`+`, `?`), and what makes maps and objects. */
const PUNCTUATION: ReadonlySet<string> = new Set('.,()[]!=<>&|-*/%');
/** What may stand between the brackets of a list, or of an index. */
const BETWEEN_BRACKETS: ReadonlySet<string> = new Set([',', '-', 'true', 'false', 'null']);

/**
 * Whether settings of `builtin:cel` hold nothing but validations whose expressions ask nobody and make no values: so each is part of
 * the request, or written there, and no step takes longer than these are large. Loops can be interrupted. Reads the text of
 * expressions, once, so that it takes no time itself; where it says no they may be as good. Says nothing of settings that are not
 * valid.
 */
export function hasPlainExpressions({ validations, failurePolicy: _failurePolicy, ...others }: JsonObject): boolean {
  return Object.keys(others).length === 0 && Array.isArray(validations) && validations.every(isPlainValidation);
}

function isPlainValidation(validation: JsonValue): boolean {
  if (!isJsonObject(validation)) {
    return false;
  }
  const { expression, messageExpression = '', message: _message, reason: _reason, ...others } = validation;
  return Object.keys(others).length === 0 && [expression, messageExpression].every(isPlain);
}

function isPlain(text: JsonValue | undefined): boolean {
  if (typeof text !== 'string' || OTHER_SYNTAX.test(text)) {
    return false;
  }
  const tokens = (text.match(TOKEN) ?? []).filter((token) => token.trim() !== '');
  let isInBrackets = false;
  return tokens.every((token, index) => {
    const before = tokens[index - 1] ?? '';
    if (token === '[' || token === ']') {
      const isExpected = isInBrackets === (token === ']');
      isInBrackets = token === '[';
      return isExpected;
    }
    if (isInBrackets) {
      return TEXT.test(token) || NUMBER.test(token) || BETWEEN_BRACKETS.has(token);
    }
    if (token === '(') {
      return isPlainCall(before, tokens.slice(index - 2, index + 3));
    }
    // A word in front of a text would be a prefix of it.
    const isPrefixed = TEXT.test(token) && WORD.test(before) && before !== 'in';
    return (
      !isPrefixed &&
      !ASKING.has(token) &&
      (TEXT.test(token) || WORD.test(token) || NUMBER.test(token) || PUNCTUATION.has(token))
    );
  });
}

/** Whether a parenthesis stands behind a function that may be called, or behind none. `around`: from two tokens before to two behind. */
function isPlainCall(before: string, around: readonly string[]): boolean {
  if (before === 'contains') {
    const [dot, , , part = '', end] = around;
    return dot === '.' && TEXT.test(part) && part.length <= MAX_PART + 2 && end === ')';
  }
  return before === '' || before === 'in' || FUNCTIONS.has(before) || '(,!=<>&|-*/%'.includes(before);
}
