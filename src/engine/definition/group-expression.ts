import { EngineError } from '../values/errors.ts';
import { nearestKey, textPosition } from '../../values/index.ts';

/** A parsed group expression: plain data, structured-cloneable. `at` is the offset in the source. */
export type GroupExpression =
  | { readonly kind: 'literal'; readonly value: boolean; readonly at: number }
  | { readonly kind: 'member'; readonly name: string; readonly at: number }
  | { readonly kind: 'not'; readonly operand: GroupExpression; readonly at: number }
  | {
      readonly kind: 'and' | 'or' | 'equal' | 'unequal';
      readonly left: GroupExpression;
      readonly right: GroupExpression;
      readonly at: number;
    };

/** A group has at most 64 members, so 8 KiB holds any readable expression. */
const MAX_EXPRESSION_LENGTH = 8_192;
/** Bounds the recursion of parser and evaluation (`((((…` and `!!!!…`); chains of && and || also count per operator. */
export const MAX_EXPRESSION_DEPTH = 256;

/** Most members for which all combinations of verdicts are tried: a thousand evaluations. */
const MAX_TRIED_MEMBERS = 10;

const TOKEN = /\s*(?:([_a-zA-Z][_a-zA-Z0-9]*)|(==|!=|&&|\|\||[!()]))/y;

interface Token {
  readonly text: string;
  readonly at: number;
}

type BinaryKind = 'and' | 'or' | 'equal' | 'unequal';

/** Binary operators, loosest first. Operators of one level associate to the left, as in CEL and rhai. */
const LEVELS: readonly Readonly<Record<string, BinaryKind>>[] = [
  { '||': 'or' },
  { '&&': 'and' },
  { '==': 'equal', '!=': 'unequal' },
];

/**
 * Parses a group expression: `==`, `!=`, `&&`, `||`, `!`, parentheses, `true`, `false` and calls of members without
 * arguments. This is the subset that CEL (Kubewarden's controller) and rhai (its policy server) read alike. Throws
 * `expression-invalid` with a position when it does not parse, names a member that is not in `members`, or names none.
 */
export function parseGroupExpression(source: string, members: ReadonlySet<string>): GroupExpression {
  return new Parser(source, members).parse();
}

/**
 * Evaluates with short circuit from left to right, as CEL and rhai do. `member` is called only for members that the
 * result depends on, and returns `undefined` when a member gave no verdict. The result is then undefined as well,
 * unless both verdicts of that member would lead to the same result. A failed member must not count as a denial,
 * because `!member()` would turn it into an approval.
 */
export function evaluateGroupExpression(
  expression: GroupExpression,
  member: (name: string) => boolean | undefined,
): boolean | undefined {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'member':
      return member(expression.name);
    case 'not': {
      const operand = evaluateGroupExpression(expression.operand, member);
      return operand === undefined ? undefined : !operand;
    }
    case 'and':
    case 'or': {
      const deciding = expression.kind === 'or';
      const left = evaluateGroupExpression(expression.left, member);
      if (left === deciding) {
        return deciding;
      }
      const right = evaluateGroupExpression(expression.right, member);
      return right === deciding ? deciding : left === undefined ? undefined : right;
    }
    case 'equal':
    case 'unequal': {
      const left = evaluateGroupExpression(expression.left, member);
      const right = evaluateGroupExpression(expression.right, member);
      if (left === undefined || right === undefined) {
        return undefined;
      }
      return (left === right) === (expression.kind === 'equal');
    }
    default:
      return expression satisfies never;
  }
}

/** The result of a valid expression if it is the same whatever the members say; undefined if not, or if it has too many members. */
export function constantResult(source: string, members: ReadonlySet<string>): boolean | undefined {
  const expression = parseGroupExpression(source, members);
  const names = [...membersOf(expression)];
  if (names.length > MAX_TRIED_MEMBERS) {
    return undefined;
  }
  const results = new Set<boolean | undefined>();
  for (let verdicts = 0; verdicts < 2 ** names.length; verdicts++) {
    results.add(evaluateGroupExpression(expression, (name) => ((verdicts >> names.indexOf(name)) & 1) === 1));
  }
  const [result, ...others] = results;
  return others.length === 0 ? result : undefined;
}

/**
 * Whether a valid expression is true for no verdicts, if some members deny every request or fail. False if it has too many members
 * to try.
 */
export function isNeverTrueWithout(source: string, members: ReadonlySet<string>, broken: ReadonlySet<string>): boolean {
  const expression = parseGroupExpression(source, members);
  const names = [...membersOf(expression)];
  const combinations = names.length > MAX_TRIED_MEMBERS ? 0 : 2 ** names.length;
  for (let verdicts = 0; verdicts < combinations; verdicts++) {
    const result = evaluateGroupExpression(expression, (name) => {
      const isSet = ((verdicts >> names.indexOf(name)) & 1) === 1;
      return broken.has(name) ? (isSet ? false : undefined) : isSet;
    });
    if (result === true) {
      return false;
    }
  }
  return combinations > 0;
}

function membersOf(expression: GroupExpression): ReadonlySet<string> {
  switch (expression.kind) {
    case 'literal':
      return new Set();
    case 'member':
      return new Set([expression.name]);
    case 'not':
      return membersOf(expression.operand);
    default:
      return new Set([...membersOf(expression.left), ...membersOf(expression.right)]);
  }
}

class Parser {
  readonly #source: string;
  /** The source with comments replaced by spaces, so that offsets stay the same. */
  readonly #code: string;
  readonly #members: ReadonlySet<string>;
  #token: Token;
  #end = 0;
  #depth = 0;
  #hasMember = false;

  constructor(source: string, members: ReadonlySet<string>) {
    this.#source = source;
    this.#code = source.replaceAll(/\/\/[^\r\n]*/g, (comment) => ' '.repeat(comment.length));
    this.#members = members;
    if (source.length > MAX_EXPRESSION_LENGTH) {
      throw this.#error(`the expression is too long: expected at most ${MAX_EXPRESSION_LENGTH} characters`, 0);
    }
    this.#token = this.#next();
  }

  parse(): GroupExpression {
    const expression = this.#binary(0);
    if (this.#token.text !== '') {
      throw this.#unexpected('an operator or the end');
    }
    if (!this.#hasMember) {
      throw this.#error(`the expression uses no member: expected a call such as ${this.#example()}`, 0);
    }
    return expression;
  }

  #binary(level: number): GroupExpression {
    const operators = LEVELS[level];
    if (operators === undefined) {
      return this.#unary();
    }
    const depth = this.#depth;
    let left = this.#binary(level + 1);
    for (;;) {
      const { text, at } = this.#token;
      const kind = Object.hasOwn(operators, text) ? operators[text] : undefined;
      if (kind === undefined) {
        this.#depth = depth;
        return left;
      }
      this.#deeper(at);
      this.#token = this.#next();
      left = { kind, left, right: this.#binary(level + 1), at };
    }
  }

  #unary(): GroupExpression {
    const { text, at } = this.#token;
    if (text !== '!') {
      return this.#primary();
    }
    this.#deeper(at);
    this.#token = this.#next();
    const operand = this.#unary();
    this.#depth--;
    return { kind: 'not', operand, at };
  }

  #primary(): GroupExpression {
    const { text, at } = this.#token;
    if (text === '(') {
      this.#deeper(at);
      this.#token = this.#next();
      const inner = this.#binary(0);
      this.#expect(')');
      this.#depth--;
      return inner;
    }
    if (!/^[_a-zA-Z]/.test(text)) {
      throw this.#unexpected('a member call, true, false, ! or (');
    }
    this.#token = this.#next();
    if (text === 'true' || text === 'false') {
      return { kind: 'literal', value: text === 'true', at };
    }
    if (!this.#members.has(text)) {
      const nearest = nearestKey(text, [...this.#members]);
      const hint = nearest === undefined ? '' : `: did you mean ${nearest}()?`;
      throw this.#error(
        `the expression names an unknown member: expected one of ${this.#names()}, got "${text}"${hint}`,
        at,
      );
    }
    this.#expect('(');
    this.#expect(')');
    this.#hasMember = true;
    return { kind: 'member', name: text, at };
  }

  #expect(text: string): void {
    if (this.#token.text !== text) {
      throw this.#unexpected(`"${text}"`);
    }
    this.#token = this.#next();
  }

  #deeper(at: number): void {
    if (++this.#depth > MAX_EXPRESSION_DEPTH) {
      throw this.#error(`the expression is too deep: expected at most ${MAX_EXPRESSION_DEPTH} nested operators`, at);
    }
  }

  #next(): Token {
    TOKEN.lastIndex = this.#end;
    const match = TOKEN.exec(this.#code);
    if (match !== null) {
      this.#end = TOKEN.lastIndex;
      const text = match[1] ?? match[2] ?? '';
      return { text, at: this.#end - text.length };
    }
    const at = this.#code.length - this.#code.slice(this.#end).trimStart().length;
    if (at < this.#code.length) {
      const character = String.fromCodePoint(this.#code.codePointAt(at) ?? 0);
      throw this.#error(
        `the expression has an unexpected character: expected ==, !=, &&, ||, !, ( or a member, got ${JSON.stringify(character)}`,
        at,
      );
    }
    return { text: '', at };
  }

  #unexpected(expected: string): EngineError {
    const got = this.#token.text === '' ? 'the end of the expression' : `"${this.#token.text}"`;
    return this.#error(`the expression does not parse: expected ${expected}, got ${got}`, this.#token.at);
  }

  #error(message: string, at: number): EngineError {
    const position = textPosition(this.#source, at);
    const text = `${message} (line ${position.line}, column ${position.column})\n${position.excerpt}`;
    return new EngineError('expression-invalid', text, { position });
  }

  #names(): string {
    const names = [...this.#members];
    const shown = names.slice(0, 10).join(', ');
    return names.length > 10 ? `${shown}, …` : shown;
  }

  #example(): string {
    const first = this.#members.values().next().value;
    return `${first ?? 'member'}()`;
  }
}
