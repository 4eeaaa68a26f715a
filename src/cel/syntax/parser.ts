import type { Expression, MapEntry, StructField } from '../model/ast.ts';
import { CelError } from '../model/errors.ts';
import type { CelIssue } from '../model/errors.ts';
import type { CelValue } from '../model/value.ts';
import { commentHint } from './comments.ts';
import { Lexer } from './lexer.ts';
import { MAX_EXPRESSION_CODE_POINTS, MAX_ISSUES, MAX_NESTING, MAX_NODES } from './limits.ts';
import { InvalidLiteral, parseBytes, parseDouble, parseInt64, parseString, parseUint64 } from './literal.ts';
import { MacroExpansion } from './macro.ts';
import type { MacroCall, MacroSet } from './macro.ts';
import { NodeFactory, TooManyNodes } from './node-factory.ts';
import type { NodePosition } from './node-factory.ts';
import { Operator, RESERVED_WORDS } from './operators.ts';
import { Source } from './source.ts';
import { codePointCount } from '../model/code-point-count.ts';
import { Token } from './token.ts';

export interface ParseOptions {
  /** The macros to expand. */
  readonly macros: MacroSet;
  /** Whether `a.?b`, `a[?b]`, `[?a]`, `{?a: b}` and `T{?a: b}` are accepted. */
  readonly optionalSyntax: boolean;
  /** Whether field names may be in back-quotes. */
  readonly escapedIdentifiers: boolean;
  /** Maximum nesting of expressions. Default: {@link MAX_NESTING}. */
  readonly maxNesting?: number;
}

export interface ParsedExpression {
  readonly source: Source;
  readonly expression: Expression;
  /** Node ids are 1 to `nodeCount`. */
  readonly nodeCount: number;
}

/**
 * Parses an expression and expands its macros.
 * @throws CelError 'syntax-invalid' with all syntax errors
 */
export function parse(text: string, options: ParseOptions): ParsedExpression {
  const source = new Source(text);
  if (text.length > MAX_EXPRESSION_CODE_POINTS) {
    const size = codePointCount(text);
    if (size > MAX_EXPRESSION_CODE_POINTS) {
      const message = `expression code point size exceeds limit: size: ${size}, limit ${MAX_EXPRESSION_CODE_POINTS}`;
      throw new CelError('syntax-invalid', message);
    }
  }
  return new Parser(source, options).parse();
}

/** Thrown to stop parsing early. */
class ParsingStopped extends Error {}

type Binary = readonly [name: string, precedence: number];

const SUM = 1;
const PRODUCT = 2;

const ARITHMETIC: readonly (Binary | undefined)[] = tokenTable([
  [Token.Plus, [Operator.Add, SUM]],
  [Token.Minus, [Operator.Subtract, SUM]],
  [Token.Star, [Operator.Multiply, PRODUCT]],
  [Token.Slash, [Operator.Divide, PRODUCT]],
  [Token.Percent, [Operator.Modulo, PRODUCT]],
]);

const RELATIONS: readonly (string | undefined)[] = tokenTable([
  [Token.Less, Operator.Less],
  [Token.LessEqual, Operator.LessEquals],
  [Token.Greater, Operator.Greater],
  [Token.GreaterEqual, Operator.GreaterEquals],
  [Token.Equal, Operator.Equals],
  [Token.NotEqual, Operator.NotEquals],
  [Token.In, Operator.In],
]);

function tokenTable<T>(entries: readonly (readonly [Token, T])[]): readonly (T | undefined)[] {
  const table: (T | undefined)[] = Array.from({ length: Token.Percent + 1 });
  for (const [token, value] of entries) {
    table[token] = value;
  }
  return table;
}

const OPERAND = 'an expression';

class Parser {
  readonly #source: Source;
  readonly #options: ParseOptions;
  readonly #issues: CelIssue[] = [];
  readonly #nodes = new NodeFactory();
  readonly #lexer: Lexer;
  /** Placeholder nodes for invalid syntax, which cause no further errors. */
  readonly #placeholders = new Set<Expression>();
  readonly #maxNesting: number;
  /** Number of open expressions around the current one. */
  #nesting = 0;
  /** Open operands of relations, and of arithmetic, around the current one. cel-go counts each kind separately. */
  #relationNesting = 0;
  #arithmeticNesting = 0;
  /** Depth of the operators in the expression parsed last. */
  #depth = 0;

  constructor(source: Source, options: ParseOptions) {
    this.#source = source;
    this.#options = options;
    this.#maxNesting = options.maxNesting ?? MAX_NESTING;
    this.#lexer = new Lexer(source.text, (message, start, end, hints) => this.#report(message, start, end, hints));
  }

  parse(): ParsedExpression {
    const expression = this.#parseAll();
    if (expression === undefined || this.#issues.length > 0) {
      throw CelError.ofIssues('syntax-invalid', this.#withCommentHint());
    }
    return { source: this.#source, expression, nodeCount: this.#nodes.count };
  }

  #withCommentHint(): readonly CelIssue[] {
    const [first, ...others] = this.#issues;
    const hint = first === undefined ? undefined : commentHint(this.#source.text, first.start);
    return first === undefined || hint === undefined
      ? this.#issues
      : [{ ...first, hints: [...first.hints, hint] }, ...others];
  }

  #parseAll(): Expression | undefined {
    try {
      this.#lexer.next();
      const expression = this.#parseExpression();
      while (this.#lexer.kind !== Token.End) {
        this.#reportUnexpected('<EOF>', this.#hintAfterExpression());
        this.#recoverAfterExpression();
      }
      return expression;
    } catch (error) {
      if (error instanceof TooManyNodes) {
        this.#addIssue(`expression expands to more than ${MAX_NODES} nodes`, 0, this.#source.text.length, []);
      } else if (!(error instanceof ParsingStopped)) {
        throw error;
      }
      return undefined;
    }
  }

  /** Continues after an unexpected token, to find further errors. */
  #recoverAfterExpression(): void {
    this.#lexer.next();
    if (isBinary(this.#lexer.kind)) {
      this.#lexer.next();
    }
    if (startsOperand(this.#lexer.kind)) {
      this.#parseExpression();
    }
  }

  // --- expressions -------------------------------------------------------------------------------------------------

  #parseExpression(): Expression {
    this.#nesting += 1;
    this.#limitNesting(this.#nesting);
    const lexer = this.#lexer;
    const { start } = lexer;
    let result = this.#parseLogical(Token.Or);
    if (lexer.kind === Token.Question) {
      const operator = lexer.start;
      let depth = this.#depth;
      lexer.next();
      const whenTrue = this.#parseLogical(Token.Or);
      depth = Math.max(depth, this.#depth);
      this.#expect(Token.Colon, ':', "a condition has two outcomes: 'condition ? this : that'");
      const whenFalse = this.#parseExpression();
      this.#updateDepth(depth);
      result = this.#operator(Operator.Conditional, [result, whenTrue, whenFalse], start, operator, operator + 1);
    }
    this.#nesting -= 1;
    return result;
  }

  /** Terms joined by `||` (each of them terms joined by `&&`) or by `&&`. The tree is balanced, as in cel-go. */
  #parseLogical(token: typeof Token.Or | typeof Token.And): Expression {
    const lexer = this.#lexer;
    const first = token === Token.Or ? this.#parseLogical(Token.And) : this.#parseRelation();
    if (lexer.kind !== token) {
      return first;
    }
    const terms = [first];
    const operators: number[] = [];
    let depth = this.#depth;
    while (lexer.kind === token) {
      operators.push(lexer.start);
      lexer.next();
      terms.push(token === Token.Or ? this.#parseLogical(Token.And) : this.#parseRelation());
      depth = Math.max(depth, this.#depth);
    }
    this.#depth = depth;
    const name = token === Token.Or ? Operator.LogicalOr : Operator.LogicalAnd;
    return this.#balance(name, terms, operators, 0, operators.length - 1);
  }

  #balance(
    name: string,
    terms: readonly Expression[],
    operators: readonly number[],
    low: number,
    high: number,
  ): Expression {
    const middle = (low + high + 1) >> 1;
    const left = middle === low ? terms[middle] : this.#balance(name, terms, operators, low, middle - 1);
    const right = middle === high ? terms[middle + 1] : this.#balance(name, terms, operators, middle + 1, high);
    const operator = operators[middle];
    if (left === undefined || right === undefined || operator === undefined) {
      throw new RangeError('operators stand between terms');
    }
    const place = { start: left.start, end: right.end, position: operator };
    return this.#nodes.namedCall(place, name, undefined, [left, right], operator, operator + 2);
  }

  #parseRelation(): Expression {
    const lexer = this.#lexer;
    const { start } = lexer;
    this.#relationNesting += 1;
    this.#limitNesting(this.#relationNesting);
    let left = this.#parseArithmetic(SUM);
    for (let name = RELATIONS[lexer.kind]; name !== undefined; name = RELATIONS[lexer.kind]) {
      const { start: operator, end } = lexer;
      const depth = this.#depth;
      lexer.next();
      this.#relationNesting += 1;
      this.#limitNesting(this.#relationNesting);
      const right = this.#parseArithmetic(SUM);
      this.#relationNesting -= 1;
      this.#updateDepth(depth);
      left = this.#operator(name, [left, right], start, operator, end);
    }
    this.#relationNesting -= 1;
    return left;
  }

  #parseArithmetic(precedence: number): Expression {
    const lexer = this.#lexer;
    const { start } = lexer;
    this.#arithmeticNesting += 1;
    this.#limitNesting(this.#arithmeticNesting);
    let left = this.#parseUnary();
    for (let binary = ARITHMETIC[lexer.kind]; binary !== undefined; binary = ARITHMETIC[lexer.kind]) {
      const [name, own] = binary;
      if (own < precedence) {
        break;
      }
      const { start: operator, end } = lexer;
      const depth = this.#depth;
      lexer.next();
      const right = this.#parseArithmetic(own + 1);
      this.#updateDepth(depth);
      left = this.#operator(name, [left, right], start, operator, end);
    }
    this.#arithmeticNesting -= 1;
    return left;
  }

  #operator(name: string, args: readonly Expression[], start: number, nameStart: number, nameEnd: number): Expression {
    const place = { start, end: this.#lexer.previousEnd, position: nameStart };
    return this.#nodes.namedCall(place, name, undefined, args, nameStart, nameEnd);
  }

  #parseUnary(): Expression {
    const { kind } = this.#lexer;
    return kind === Token.Not || kind === Token.Minus ? this.#parsePrefixed(kind) : this.#parseMember();
  }

  /** Repeated `!` or repeated `-`. Pairs cancel out. */
  #parsePrefixed(kind: typeof Token.Not | typeof Token.Minus): Expression {
    const lexer = this.#lexer;
    const { start } = lexer;
    let count = 0;
    while (lexer.kind === kind) {
      count += 1;
      lexer.next();
    }
    if (count === 1 && kind === Token.Minus && isSigned(lexer.kind)) {
      return this.#parseMember(start);
    }
    const operand = this.#parsePrefixedOperand();
    const name = kind === Token.Not ? Operator.LogicalNot : Operator.Negate;
    return count % 2 === 0 ? operand : this.#operator(name, [operand], start, start, start + 1);
  }

  #parsePrefixedOperand(): Expression {
    const { kind, start } = this.#lexer;
    if (kind !== Token.Not && kind !== Token.Minus) {
      return this.#parseMember();
    }
    this.#lexer.next();
    if (kind === Token.Minus && isSigned(this.#lexer.kind)) {
      return this.#parseMember(start);
    }
    const message = `Syntax error: mismatched input '${kind === Token.Not ? '!' : '-'}' expecting ${OPERAND}`;
    this.#report(message, start, start + 1, ['! and - cannot follow each other: put brackets around the inner one']);
    return this.#parseMember();
  }

  /** A primary expression with its selections, method calls and indexes. */
  #parseMember(minusAt?: number): Expression {
    const lexer = this.#lexer;
    const start = minusAt ?? lexer.start;
    let operand = minusAt === undefined ? this.#parsePrimary() : this.#parseNumber(minusAt);
    for (;;) {
      if (lexer.kind === Token.Dot) {
        operand = this.#parseSelection(operand, start);
      } else if (lexer.kind === Token.OpenBracket) {
        operand = this.#parseIndex(operand, start);
      } else {
        return operand;
      }
    }
  }

  #parseSelection(operand: Expression, start: number): Expression {
    const lexer = this.#lexer;
    const dot = lexer.start;
    lexer.next();
    const isOptional = lexer.kind === Token.Question;
    if (isOptional) {
      lexer.next();
    }
    const { kind, start: nameStart, end: nameEnd } = lexer;
    if (kind !== Token.Identifier && kind !== Token.EscapedIdentifier) {
      this.#reportUnexpected('IDENTIFIER', this.#hintAfterDot());
      if (isWord(kind)) {
        lexer.next();
      }
      return this.#placeholderAt(dot, nameStart);
    }
    const name = this.#fieldName();
    if (lexer.kind === Token.OpenParenthesis && kind === Token.Identifier && !isOptional) {
      return this.#parseMethodCall(operand, name, { start, nameStart, nameEnd });
    }
    const depth = this.#depth;
    this.#depth = 0;
    this.#updateDepth(depth);
    if (!isOptional) {
      return this.#nodes.select({ start, end: nameEnd, position: dot }, operand, name);
    }
    if (!this.#options.optionalSyntax) {
      this.#report("unsupported syntax '.?'", dot, nameEnd, []);
    }
    const field = this.#nodes.literal({ start: nameStart, end: nameEnd, position: nameStart }, name);
    const place = { start, end: nameEnd, position: dot };
    return this.#nodes.namedCall(place, Operator.OptionalSelect, undefined, [operand, field], dot, dot + 2);
  }

  #parseMethodCall(
    target: Expression,
    name: string,
    place: { readonly start: number; readonly nameStart: number; readonly nameEnd: number },
  ): Expression {
    const depth = this.#depth;
    const position = this.#lexer.start;
    const args = this.#parseArguments();
    this.#updateDepth(depth);
    const { start, nameStart, nameEnd } = place;
    const end = this.#lexer.previousEnd;
    return this.#callOrMacro({ name, target, args }, { start, end, position }, nameStart, nameEnd);
  }

  #parseIndex(operand: Expression, start: number): Expression {
    const lexer = this.#lexer;
    const bracket = lexer.start;
    const depth = this.#depth;
    lexer.next();
    const isOptional = lexer.kind === Token.Question;
    if (isOptional) {
      lexer.next();
      if (!this.#options.optionalSyntax) {
        this.#report("unsupported syntax '[?'", bracket, lexer.start, []);
      }
    }
    const index = this.#parseExpression();
    this.#expect(Token.CloseBracket, ']');
    this.#updateDepth(depth);
    const name = isOptional ? Operator.OptionalIndex : Operator.Index;
    return this.#operator(name, [operand, index], start, bracket, lexer.previousEnd);
  }

  #callOrMacro(call: MacroCall, place: NodePosition, nameStart: number, nameEnd: number): Expression {
    const { name, target, args } = call;
    const macro = this.#options.macros.find(name, target !== undefined, args.length);
    const expanded = macro?.expand(
      new MacroExpansion(call, place, this.#nodes, (message, at, hints) => {
        this.#reportAt(message, at, hints);
        return this.#asPlaceholder(this.#nodes.literal(place, null));
      }),
    );
    return expanded ?? this.#nodes.namedCall(place, name, target, args, nameStart, nameEnd);
  }

  // --- primary expressions -----------------------------------------------------------------------------------------

  #parsePrimary(): Expression {
    const { kind } = this.#lexer;
    this.#depth = 0;
    switch (kind) {
      case Token.Identifier:
      case Token.Dot:
        return this.#parseName();
      case Token.Int:
      case Token.Uint:
      case Token.Double:
        return this.#parseNumber();
      case Token.String:
        return this.#parseText(parseString);
      case Token.Bytes:
        return this.#parseText(parseBytes);
      case Token.True:
        return this.#parseConstant(true);
      case Token.False:
        return this.#parseConstant(false);
      case Token.Null:
        return this.#parseConstant(null);
      case Token.OpenParenthesis:
        return this.#parseBrackets();
      case Token.OpenBracket:
        return this.#parseList();
      case Token.OpenBrace:
        return this.#parseMap();
      default:
        this.#reportUnexpected(OPERAND, hintInsteadOfOperand(kind));
        return this.#skipInvalid();
    }
  }

  #parseConstant(value: CelValue): Expression {
    const { start, end } = this.#lexer;
    this.#lexer.next();
    return this.#nodes.literal({ start, end, position: start }, value);
  }

  /** A number; `minusAt` is the position of its sign. */
  #parseNumber(minusAt?: number): Expression {
    const { kind, tokenText, start: digitsAt, end } = this.#lexer;
    const isNegative = minusAt !== undefined;
    const start = minusAt ?? digitsAt;
    this.#depth = 0;
    this.#lexer.next();
    const value = numberValue(kind, tokenText, isNegative);
    if (value !== undefined) {
      return this.#nodes.literal({ start, end, position: start }, value);
    }
    const type = kind === Token.Int ? 'int' : kind === Token.Uint ? 'uint' : 'double';
    this.#report(`invalid ${type} literal`, start, end, [NUMBER_RANGES[type]]);
    return this.#placeholderAt(start, end);
  }

  #parseText(read: (token: string) => string | Uint8Array | InvalidLiteral): Expression {
    const { tokenText, start, end } = this.#lexer;
    this.#lexer.next();
    const value = read(tokenText);
    if (value instanceof InvalidLiteral) {
      this.#report(value.message, start + value.offset, end, value.hint === undefined ? [] : [value.hint]);
      return this.#placeholderAt(start, end);
    }
    return this.#nodes.literal({ start, end, position: start }, value);
  }

  #parseBrackets(): Expression {
    this.#lexer.next();
    const expression = this.#parseExpression();
    this.#expect(Token.CloseParenthesis, ')');
    return expression;
  }

  /** A variable, a function call, or the construction of a struct. A leading dot means the root namespace. */
  #parseName(): Expression {
    const lexer = this.#lexer;
    const { start } = lexer;
    const isRooted = lexer.kind === Token.Dot;
    if (isRooted) {
      lexer.next();
      if (lexer.kind !== Token.Identifier) {
        this.#reportUnexpected('IDENTIFIER', []);
        return this.#placeholderAt(start, lexer.start);
      }
    }
    const { start: nameStart, end: nameEnd, tokenText: word } = lexer;
    lexer.next();
    const name = isRooted ? `.${word}` : word;
    const struct = this.#parseStructAfter(name, start);
    if (struct !== undefined) {
      return struct;
    }
    if (RESERVED_WORDS.has(word)) {
      const hint = `'${word}' is a word that CEL reserves: fields may be named so, variables not`;
      this.#report(`reserved identifier: ${word}`, nameStart, nameEnd, [hint]);
    }
    if (lexer.kind !== Token.OpenParenthesis) {
      return this.#nodes.identifier({ start, end: nameEnd, position: nameStart }, name);
    }
    const position = lexer.start;
    const args = this.#parseArguments();
    const call = { name, target: undefined, args };
    return this.#callOrMacro(call, { start, end: lexer.previousEnd, position }, nameStart, nameEnd);
  }

  /** A struct whose type name starts with `firstName`. Returns undefined, and reads nothing, if none follows. */
  #parseStructAfter(firstName: string, start: number): Expression | undefined {
    const lexer = this.#lexer;
    if (lexer.kind === Token.OpenBrace) {
      return this.#parseStruct(firstName, start);
    }
    if (lexer.kind !== Token.Dot || !mayNameStruct(lexer.text, lexer.end)) {
      return undefined;
    }
    const { start: dot, previousEnd } = lexer;
    const names = [firstName];
    while (this.#skipIf(Token.Dot) && this.#isAt(Token.Identifier)) {
      names.push(lexer.tokenText);
      lexer.next();
    }
    if (this.#isAt(Token.OpenBrace)) {
      return this.#parseStruct(names.join('.'), start);
    }
    lexer.rewind(dot, previousEnd);
    return undefined;
  }

  #parseArguments(): Expression[] {
    const args: Expression[] = [];
    this.#lexer.next();
    this.#depth = 0;
    if (this.#skipIf(Token.CloseParenthesis)) {
      return args;
    }
    let depth = 0;
    do {
      args.push(this.#parseExpression());
      depth = Math.max(depth, this.#depth);
    } while (this.#endItem(Token.CloseParenthesis, ')'));
    this.#depth = depth;
    return args;
  }

  #parseList(): Expression {
    const { start } = this.#lexer;
    const elements: Expression[] = [];
    const optionalIndexes = new Set<number>();
    this.#parseItems(Token.CloseBracket, ']', () => {
      if (this.#parseOptionalMark()) {
        optionalIndexes.add(elements.length);
      }
      elements.push(this.#parseExpression());
    });
    return this.#nodes.list({ start, end: this.#lexer.previousEnd, position: start }, elements, optionalIndexes);
  }

  #parseMap(): Expression {
    const { start } = this.#lexer;
    const entries: MapEntry[] = [];
    this.#parseItems(Token.CloseBrace, '}', () => {
      const entryStart = this.#lexer.start;
      const isOptional = this.#parseOptionalMark();
      const key = this.#parseExpression();
      const depth = this.#depth;
      const position = this.#lexer.start;
      if (!this.#expect(Token.Colon, ':')) {
        return;
      }
      const value = this.#parseExpression();
      this.#depth = Math.max(depth, this.#depth);
      const place = { start: entryStart, end: this.#lexer.previousEnd, position };
      entries.push(this.#nodes.mapEntry(place, key, value, isOptional));
    });
    return this.#nodes.map({ start, end: this.#lexer.previousEnd, position: start }, entries);
  }

  #parseStruct(typeName: string, start: number): Expression {
    const position = this.#lexer.start;
    const fields: StructField[] = [];
    this.#parseItems(Token.CloseBrace, '}', () => {
      const fieldStart = this.#lexer.start;
      const isOptional = this.#parseOptionalMark();
      const { kind } = this.#lexer;
      if (kind !== Token.Identifier && kind !== Token.EscapedIdentifier) {
        this.#reportUnexpected(
          'IDENTIFIER',
          kind === Token.String ? ['names of fields are written without quotes'] : [],
        );
        this.#skipToBoundary();
        return;
      }
      const name = this.#fieldName();
      const colon = this.#lexer.start;
      if (!this.#expect(Token.Colon, ':')) {
        return;
      }
      const value = this.#parseExpression();
      const place = { start: fieldStart, end: this.#lexer.previousEnd, position: colon };
      fields.push(this.#nodes.structField(place, name, value, isOptional));
    });
    return this.#nodes.struct({ start, end: this.#lexer.previousEnd, position }, typeName, fields);
  }

  /** Items in brackets, separated by commas, with an optional trailing comma. */
  #parseItems(close: Token, closeText: string, parseItem: () => void): void {
    this.#lexer.next();
    this.#depth = 0;
    // The grammar accepts a comma alone as an empty list.
    if (this.#skipIf(Token.Comma)) {
      this.#expect(close, closeText);
      return;
    }
    if (this.#skipIf(close)) {
      return;
    }
    let depth = 0;
    do {
      this.#depth = 0;
      parseItem();
      depth = Math.max(depth, this.#depth);
    } while (this.#endItem(close, closeText) && !this.#skipIf(close));
    this.#depth = depth;
  }

  /** Reads the token after an item. Returns whether it is a comma, so another item may follow. */
  #endItem(close: Token, closeText: string): boolean {
    if (this.#skipIf(Token.Comma)) {
      return true;
    }
    if (this.#skipIf(close)) {
      return false;
    }
    this.#reportUnexpected(`'${closeText}'`, this.#hintAfterExpression());
    do {
      this.#skipToBoundary();
    } while (this.#skipIf(Token.Colon));
    if (this.#skipIf(Token.Comma)) {
      return true;
    }
    this.#skipIf(close);
    return false;
  }

  #parseOptionalMark(): boolean {
    const { kind, start, end } = this.#lexer;
    if (kind !== Token.Question) {
      return false;
    }
    if (!this.#options.optionalSyntax) {
      this.#report("unsupported syntax '?'", start, end, []);
    }
    this.#lexer.next();
    return true;
  }

  /** The name in the current token, without back-quotes. */
  #fieldName(): string {
    const { kind, tokenText, start, end } = this.#lexer;
    this.#lexer.next();
    if (kind === Token.Identifier) {
      return tokenText;
    }
    if (!this.#options.escapedIdentifiers) {
      this.#report("unsupported syntax: '`'", start, end, [ESCAPING_HINT]);
    }
    return tokenText.slice(1, -1);
  }

  // --- limits, errors and recovery ---------------------------------------------------------------------------------

  #limitNesting(nesting: number): void {
    if (nesting > this.#maxNesting) {
      this.#stop(`expression recursion limit exceeded: ${this.#maxNesting}`);
    }
  }

  /** Updates the depth for an operator above the expression parsed last and one of depth `other`. */
  #updateDepth(other: number): void {
    this.#depth = Math.max(this.#depth, other) + 1;
    if (this.#depth > this.#maxNesting) {
      this.#stop('max recursion depth exceeded');
    }
  }

  #stop(message: string): never {
    this.#addIssue(message, this.#lexer.start, this.#lexer.end, [`expressions may nest ${this.#maxNesting} deep`]);
    throw new ParsingStopped();
  }

  #isAt(kind: Token): boolean {
    return this.#lexer.kind === kind;
  }

  #skipIf(kind: Token): boolean {
    if (!this.#isAt(kind)) {
      return false;
    }
    this.#lexer.next();
    return true;
  }

  /**
   * Reads an expected token. If another token is there, reports it, skips to where the token may be, and returns
   * whether it was found.
   */
  #expect(kind: Token, text: string, hint?: string): boolean {
    if (this.#skipIf(kind)) {
      return true;
    }
    const hints = this.#hintAfterExpression();
    this.#reportUnexpected(`'${text}'`, hints.length === 0 && hint !== undefined ? [hint] : hints);
    this.#skipToBoundary();
    return this.#skipIf(kind);
  }

  /** Skips to a possible end of an expression or item, including whole pairs of brackets. */
  #skipToBoundary(): void {
    let open = 0;
    for (;;) {
      const { kind } = this.#lexer;
      if (kind === Token.End || (open === 0 && isBoundary(kind))) {
        return;
      }
      if (isOpening(kind)) {
        open += 1;
      } else if (isClosing(kind)) {
        open -= 1;
      }
      this.#lexer.next();
    }
  }

  /** Skips invalid syntax and returns a placeholder. */
  #skipInvalid(): Expression {
    const { start } = this.#lexer;
    if (!isBoundary(this.#lexer.kind) && !isBinary(this.#lexer.kind)) {
      this.#lexer.next();
    }
    return this.#placeholderAt(start, this.#lexer.previousEnd);
  }

  #placeholderAt(start: number, end: number): Expression {
    return this.#asPlaceholder(this.#nodes.literal({ start, end, position: start }, null));
  }

  #asPlaceholder(node: Expression): Expression {
    this.#placeholders.add(node);
    return node;
  }

  #reportAt(message: string, node: Expression, hints: readonly string[]): void {
    if (!this.#placeholders.has(node)) {
      this.#addIssue(message, node.position, node.end, hints);
    }
  }

  #reportUnexpected(expected: string, hints: readonly string[]): void {
    const { kind, tokenText, start, end } = this.#lexer;
    const found = kind === Token.End ? '<EOF>' : tokenText;
    this.#report(`Syntax error: mismatched input '${found}' expecting ${expected}`, start, end, hints);
  }

  #report(message: string, start: number, end: number, hints: readonly string[]): void {
    // Further errors at the same position are usually consequences of the first.
    if (this.#issues.at(-1)?.start !== start) {
      this.#addIssue(message, start, end, hints);
    }
  }

  #addIssue(message: string, start: number, end: number, hints: readonly string[]): void {
    this.#issues.push(this.#source.issue(message, { start, end }, { hints }));
    if (this.#issues.length >= MAX_ISSUES) {
      throw new ParsingStopped();
    }
  }

  #hintAfterExpression(): readonly string[] {
    const { kind, tokenText } = this.#lexer;
    if (kind === Token.Identifier) {
      return WORD_HINTS.get(tokenText.toLowerCase()) ?? [];
    }
    return kind === Token.Not && /^!\s*in\b/u.test(this.#lexer.text.slice(this.#lexer.start, this.#lexer.start + 8))
      ? [NOT_IN_HINT]
      : [];
  }

  #hintAfterDot(): readonly string[] {
    const { kind, tokenText } = this.#lexer;
    if (isWord(kind)) {
      return [
        `'${tokenText}' is a word of the language: write ["${tokenText}"], or __${tokenText}__ for a field of a schema`,
      ];
    }
    if (kind === Token.End) {
      return [ENDS_TOO_EARLY];
    }
    return kind === Token.String || kind === Token.Int ? ['did you mean [...]?'] : [];
  }
}

const ENDS_TOO_EARLY = 'the expression ends too early';
const NOT_IN_HINT = "did you mean '!(a in b)'?";
const ESCAPING_HINT = 'write ["name"], or the escaped name: __dot__ for ., __dash__ for -, __slash__ for /';

const NUMBER_RANGES = {
  int: 'whole numbers are between -9223372036854775808 and 9223372036854775807',
  uint: 'unsigned numbers are between 0u and 18446744073709551615u',
  double: 'doubles are between -1.7976931348623157e308 and 1.7976931348623157e308',
} as const;

const WORD_HINTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['and', ["did you mean '&&'?"]],
  ['or', ["did you mean '||'?"]],
  ['not', [NOT_IN_HINT]],
  ['is', ["did you mean '=='?"]],
  ['eq', ["did you mean '=='?"]],
  ['mod', ["did you mean '%'?"]],
  ['matches', ["did you mean '.matches(...)'?"]],
  ['contains', ["did you mean '.contains(...)'?"]],
  ['startswith', ["did you mean '.startsWith(...)'?"]],
  ['endswith', ["did you mean '.endsWith(...)'?"]],
  ['then', ["did you mean 'condition ? this : that'?"]],
]);

function hintInsteadOfOperand(kind: Token): readonly string[] {
  if (kind === Token.End) {
    return [ENDS_TOO_EARLY];
  }
  if (kind === Token.EscapedIdentifier) {
    return ['only fields may be named in back-quotes'];
  }
  return kind === Token.Equal || kind === Token.NotEqual ? ['compare one value with another: a == b'] : [];
}

/**
 * Whether the names after the first dot may end with a brace. Checks only characters, because most names are not
 * structs.
 */
function mayNameStruct(text: string, from: number): boolean {
  let index = from;
  for (;;) {
    const code = text.charCodeAt(index);
    const isLetter = (code | 32) >= 97 && (code | 32) <= 122;
    const isDigit = code >= 48 && code <= 57;
    if (!isLetter && !isDigit && code !== 95 && code !== 46) {
      break;
    }
    index += 1;
  }
  const code = text.charCodeAt(index);
  // Spaces and comments may be between names: the lexer has to decide.
  return code === 123 || code === 47 || code === 32 || (code >= 9 && code <= 13);
}

function numberValue(kind: Token, text: string, isNegative: boolean): CelValue | undefined {
  if (kind === Token.Uint) {
    return parseUint64(text);
  }
  return kind === Token.Int ? parseInt64(text, isNegative) : parseDouble(text, isNegative);
}

function isWord(kind: Token): boolean {
  return kind === Token.In || kind === Token.True || kind === Token.False || kind === Token.Null;
}

/** Whether a minus before this token is part of the number. */
function isSigned(kind: Token): boolean {
  return kind === Token.Int || kind === Token.Double;
}

function isOpening(kind: Token): boolean {
  return kind === Token.OpenParenthesis || kind === Token.OpenBracket || kind === Token.OpenBrace;
}

function isClosing(kind: Token): boolean {
  return kind === Token.CloseParenthesis || kind === Token.CloseBracket || kind === Token.CloseBrace;
}

function isBoundary(kind: Token): boolean {
  return isClosing(kind) || kind === Token.Comma || kind === Token.Colon || kind === Token.End;
}

function isBinary(kind: Token): boolean {
  const isLogical = kind === Token.And || kind === Token.Or || kind === Token.Question;
  return isLogical || RELATIONS[kind] !== undefined || ARITHMETIC[kind] !== undefined;
}

function startsOperand(kind: Token): boolean {
  return kind !== Token.End && !isBoundary(kind) && !isBinary(kind);
}
