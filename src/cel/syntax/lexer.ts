import { Token } from './token.ts';

/** Called for invalid or unknown tokens. */
type ReportLexicalError = (message: string, start: number, end: number, hints: readonly string[]) => void;

const IDENTIFIER_START = 1;
const DIGIT = 2;
const HEX_LETTER = 4;
const SPACE = 8;
const ESCAPED_NAME = 16;

const CLASSES = characterClasses();

const QUOTE = 34;
const APOSTROPHE = 39;
const BACKSLASH = 92;
const BACK_QUOTE = 96;
const LINE_FEED = 10;
const RETURN = 13;
const SLASH = 47;
const DOT = 46;
const PLUS = 43;
const MINUS = 45;
const EQUALS = 61;
const ZERO = 48;
const LOWER_X = 120;
/** The bit that makes an ASCII letter lower case. */
const LOWER = 32;
const LETTER_B = 98;
const LETTER_E = 101;
const LETTER_R = 114;
const LETTER_U = 117;

/** What characters are meant for that begin no token. */
const UNRECOGNIZED_HINTS: Readonly<Record<string, string>> = {
  '#': 'a comment begins with //',
  ';': 'an expression is one value: join conditions by && instead of ;',
};

/** Splits an expression into tokens, one at a time. The first call of {@link Lexer.next} reads the first token. */
export class Lexer {
  readonly text: string;
  /** The current token and its position. */
  kind: Token = Token.End;
  start = 0;
  end = 0;
  /** End of the token before the current one. */
  previousEnd = 0;
  readonly #reportError: ReportLexicalError;

  constructor(text: string, reportError: ReportLexicalError) {
    this.text = text;
    this.#reportError = reportError;
  }

  /** Advances to the next token; stays at the end. */
  next(): void {
    this.previousEnd = this.end;
    do {
      this.start = this.#skipSpace(this.end);
      this.kind = this.#scan();
    } while (this.kind === Token.End && this.end < this.text.length);
    if (this.kind === Token.End) {
      this.start = this.text.length;
    }
  }

  /** The text of the current token. */
  get tokenText(): string {
    return this.text.slice(this.start, this.end);
  }

  /** Continues at the start of a token. */
  rewind(start: number, previousEnd: number): void {
    this.end = start;
    this.next();
    this.previousEnd = previousEnd;
  }

  #skipSpace(from: number): number {
    const { text } = this;
    let index = from;
    for (;;) {
      const code = text.charCodeAt(index);
      if (classOf(code) & SPACE) {
        index += 1;
      } else if (code === SLASH && text.charCodeAt(index + 1) === SLASH) {
        const lineFeed = text.indexOf('\n', index);
        index = lineFeed === -1 ? text.length : lineFeed;
      } else {
        return index;
      }
    }
  }

  /** Scans the token at `start` and sets `end`. Returns End for an unknown token. */
  #scan(): Token {
    const { text, start } = this;
    if (start >= text.length) {
      this.end = text.length;
      return Token.End;
    }
    const code = text.charCodeAt(start);
    const kind = classOf(code);
    if (kind & IDENTIFIER_START) {
      return this.#scanWord(code);
    }
    if (kind & DIGIT || (code === DOT && classOf(text.charCodeAt(start + 1)) & DIGIT)) {
      return this.#scanNumber();
    }
    if (code === QUOTE || code === APOSTROPHE) {
      this.end = this.#scanString(start, false);
      return Token.String;
    }
    return this.#scanOperator(code);
  }

  #scanOperator(code: number): Token {
    const isFollowedByEquals = this.text.charCodeAt(this.start + 1) === EQUALS;
    this.end = this.start + 1;
    switch (code) {
      case 0x5b:
        return Token.OpenBracket;
      case 0x5d:
        return Token.CloseBracket;
      case 0x7b:
        return Token.OpenBrace;
      case 0x7d:
        return Token.CloseBrace;
      case 0x28:
        return Token.OpenParenthesis;
      case 0x29:
        return Token.CloseParenthesis;
      case DOT:
        return Token.Dot;
      case 0x2c:
        return Token.Comma;
      case MINUS:
        return Token.Minus;
      case 0x3f:
        return Token.Question;
      case 0x3a:
        return Token.Colon;
      case PLUS:
        return Token.Plus;
      case 0x2a:
        return Token.Star;
      case SLASH:
        return Token.Slash;
      case 0x25:
        return Token.Percent;
      case 0x21:
        return this.#withEquals(isFollowedByEquals, Token.NotEqual, Token.Not);
      case 0x3c:
        return this.#withEquals(isFollowedByEquals, Token.LessEqual, Token.Less);
      case 0x3e:
        return this.#withEquals(isFollowedByEquals, Token.GreaterEqual, Token.Greater);
      case EQUALS:
        return isFollowedByEquals
          ? this.#withEquals(true, Token.Equal, Token.Equal)
          : this.#recoverOperator('==', Token.Equal);
      case 0x26:
        return this.#doubled(code) ? Token.And : this.#recoverOperator('&&', Token.And);
      case 0x7c:
        return this.#doubled(code) ? Token.Or : this.#recoverOperator('||', Token.Or);
      case BACK_QUOTE:
        return this.#scanEscapedIdentifier();
      default:
        return this.#unrecognized();
    }
  }

  #withEquals(isFollowedByEquals: boolean, longer: Token, shorter: Token): Token {
    if (!isFollowedByEquals) {
      return shorter;
    }
    this.end = this.start + 2;
    // `===` is a common mistake of JavaScript users: one error, not two.
    if (longer !== Token.LessEqual && longer !== Token.GreaterEqual && this.text.charCodeAt(this.end) === EQUALS) {
      this.end += 1;
      const meant = longer === Token.Equal ? '==' : '!=';
      this.#report([`did you mean '${meant}'?`]);
    }
    return longer;
  }

  #doubled(code: number): boolean {
    const isDoubled = this.text.charCodeAt(this.start + 1) === code;
    this.end = this.start + (isDoubled ? 2 : 1);
    return isDoubled;
  }

  /** A lone `=`, `&` or `|`: reports an error and continues with the intended operator. */
  #recoverOperator(operator: string, token: Token): Token {
    this.#report([`did you mean '${operator}'?`]);
    return token;
  }

  #unrecognized(): Token {
    const code = this.text.codePointAt(this.start) ?? 0;
    this.end = this.start + (code > 0xffff ? 2 : 1);
    const hint = UNRECOGNIZED_HINTS[String.fromCodePoint(code)];
    this.#report(hint === undefined ? [] : [hint]);
    return Token.End;
  }

  #report(hints: readonly string[]): void {
    const message = `Syntax error: token recognition error at: '${this.tokenText}'`;
    this.#reportError(message, this.start, this.end, hints);
  }

  #scanWord(first: number): Token {
    const { text, start } = this;
    let index = start + 1;
    let code = text.charCodeAt(index);
    while (classOf(code) & (IDENTIFIER_START | DIGIT)) {
      index += 1;
      code = text.charCodeAt(index);
    }
    if (code === QUOTE || code === APOSTROPHE) {
      const prefix = stringPrefix(first, index - start === 2 ? text.charCodeAt(start + 1) : 0, index - start);
      if (prefix !== undefined) {
        this.end = this.#scanString(index, prefix.isRaw);
        return prefix.token;
      }
    }
    this.end = index;
    return keyword(text, start, index);
  }

  #scanNumber(): Token {
    const { text, start } = this;
    if (
      text.charCodeAt(start) === ZERO &&
      text.charCodeAt(start + 1) === LOWER_X &&
      isHex(text.charCodeAt(start + 2))
    ) {
      let index = start + 3;
      while (isHex(text.charCodeAt(index))) {
        index += 1;
      }
      return this.#endOfInteger(index);
    }
    let index = this.#skipDigits(start);
    let isDouble = false;
    if (text.charCodeAt(index) === DOT && classOf(text.charCodeAt(index + 1)) & DIGIT) {
      isDouble = true;
      index = this.#skipDigits(index + 1);
    }
    const exponent = this.#skipExponent(index);
    if (!isDouble && exponent === index) {
      return this.#endOfInteger(index);
    }
    this.end = exponent;
    return Token.Double;
  }

  #endOfInteger(index: number): Token {
    if ((this.text.charCodeAt(index) | LOWER) === LETTER_U) {
      this.end = index + 1;
      return Token.Uint;
    }
    this.end = index;
    return Token.Int;
  }

  #skipDigits(from: number): number {
    let index = from;
    while (classOf(this.text.charCodeAt(index)) & DIGIT) {
      index += 1;
    }
    return index;
  }

  #skipExponent(from: number): number {
    if ((this.text.charCodeAt(from) | LOWER) !== LETTER_E) {
      return from;
    }
    const sign = this.text.charCodeAt(from + 1);
    const digits = sign === PLUS || sign === MINUS ? from + 2 : from + 1;
    const end = this.#skipDigits(digits);
    return end === digits ? from : end;
  }

  /** Returns the end of the string that opens at a quote, including its closing quotes. */
  #scanString(quoteAt: number, isRaw: boolean): number {
    const { text } = this;
    const quote = text.charCodeAt(quoteAt);
    const isTriple = text.charCodeAt(quoteAt + 1) === quote && text.charCodeAt(quoteAt + 2) === quote;
    let index = quoteAt + (isTriple ? 3 : 1);
    while (index < text.length) {
      const code = text.charCodeAt(index);
      if (code === BACKSLASH && !isRaw) {
        index += 2;
      } else if (code === quote && !isTriple) {
        return index + 1;
      } else if (code === quote && text.charCodeAt(index + 1) === quote && text.charCodeAt(index + 2) === quote) {
        return index + 3;
      } else if (!isTriple && (code === LINE_FEED || code === RETURN)) {
        break;
      } else {
        index += 1;
      }
    }
    const end = Math.min(index, text.length);
    const opening = text.slice(this.start, Math.min(end, this.start + 20));
    this.#reportError(`Syntax error: token recognition error at: '${opening}'`, this.start, end, [
      isTriple
        ? 'the text is not closed: its three quotes are missing'
        : 'the text is not closed: its quote is missing on this line',
    ]);
    return end;
  }

  #scanEscapedIdentifier(): Token {
    const { text, start } = this;
    let index = start + 1;
    while (classOf(text.charCodeAt(index)) & ESCAPED_NAME) {
      index += 1;
    }
    if (text.charCodeAt(index) !== BACK_QUOTE || index === start + 1) {
      this.end = index;
      this.#report(['names in back-quotes consist of letters, digits, spaces and _ . - /']);
      return Token.End;
    }
    this.end = index + 1;
    return Token.EscapedIdentifier;
  }
}

function stringPrefix(first: number, second: number, length: number): { isRaw: boolean; token: Token } | undefined {
  const lower = first | LOWER;
  if (length === 1 && lower === LETTER_R) {
    return { isRaw: true, token: Token.String };
  }
  if (lower !== LETTER_B || length > 2) {
    return undefined;
  }
  if (length === 1) {
    return { isRaw: false, token: Token.Bytes };
  }
  return (second | LOWER) === LETTER_R ? { isRaw: true, token: Token.Bytes } : undefined;
}

function keyword(text: string, start: number, end: number): Token {
  const length = end - start;
  if (length === 2 && text.startsWith('in', start)) {
    return Token.In;
  }
  if (length === 4 && text.startsWith('true', start)) {
    return Token.True;
  }
  if (length === 4 && text.startsWith('null', start)) {
    return Token.Null;
  }
  if (length === 5 && text.startsWith('false', start)) {
    return Token.False;
  }
  return Token.Identifier;
}

function classOf(code: number): number {
  return CLASSES[code] ?? 0;
}

function isHex(code: number): boolean {
  return (classOf(code) & (DIGIT | HEX_LETTER)) !== 0;
}

function characterClasses(): Uint8Array {
  const classes = new Uint8Array(128);
  const add = (characters: string, kind: number): void => {
    for (const character of characters) {
      const code = character.charCodeAt(0);
      classes[code] = (classes[code] ?? 0) | kind;
    }
  };
  const lower = 'abcdefghijklmnopqrstuvwxyz';
  const letters = `${lower}${lower.toUpperCase()}_`;
  add(letters, IDENTIFIER_START | ESCAPED_NAME);
  add('0123456789', DIGIT | ESCAPED_NAME);
  add('abcdefABCDEF', HEX_LETTER);
  add(' \t\r\n\f', SPACE);
  add('.-/ ', ESCAPED_NAME);
  return classes;
}
