import { compareStrings } from '../go/index.ts';
import { invalid } from './field-error.ts';
import { qualifiedNameProblems } from '../names/index.ts';
import { checkedRequirement, Selector, SelectorError } from './selectors.ts';
import type { LabelRequirement, SelectorOperator } from './selectors.ts';

/**
 * Parses a label selector of `kubectl -l` or a query: `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
 *
 * @throws SelectorError with the message of an API server.
 */
export function parseLabelSelector(text: string): Selector {
  return new LabelSelectorParser(text).parse();
}

type Token =
  | { readonly kind: 'identifier' | 'end'; readonly text: string }
  | { readonly kind: 'symbol'; readonly text: '(' | ')' | ',' | '!' | '=' | '==' | '!=' | '>' | '<' };

const BINARY_OPERATORS: ReadonlyMap<string, SelectorOperator> = new Map([
  ['in', 'in'],
  ['notin', 'notin'],
  ['=', '='],
  ['==', '=='],
  ['!=', '!='],
  ['>', 'gt'],
  ['<', 'lt'],
]);

const TOKEN = /[ \t\r\n]*(?:(?<symbol>==|!=|[=!(),<>])|(?<word>[^=!(),<> \t\r\n]+)|$)/uy;

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  const pattern = new RegExp(TOKEN);
  for (;;) {
    const { symbol, word } = pattern.exec(text)?.groups ?? {};
    if (symbol !== undefined) {
      tokens.push({ kind: 'symbol', text: symbol } as Token);
    } else if (word === undefined) {
      tokens.push({ kind: 'end', text: '' });
      return tokens;
    } else {
      tokens.push({ kind: 'identifier', text: word });
    }
  }
}

class LabelSelectorParser {
  readonly #tokens: readonly Token[];
  #position = 0;

  constructor(text: string) {
    this.#tokens = tokensOf(text);
  }

  parse(): Selector {
    const requirements: LabelRequirement[] = [];
    for (;;) {
      if (this.#next.kind === 'end') {
        return new Selector(requirements);
      }
      if (!this.#startsRequirement()) {
        throw new SelectorError(`found '${this.#next.text}', expected: !, identifier, or 'end of string'`);
      }
      try {
        requirements.push(this.#requirement());
      } catch (error) {
        throw error instanceof SelectorError
          ? new SelectorError(`unable to parse requirement: ${error.message}`)
          : error;
      }
      const after = this.#take();
      if (after.kind === 'end') {
        return new Selector(requirements);
      }
      if (!isSymbol(after, ',')) {
        throw new SelectorError(`found '${after.text}', expected: ',' or 'end of string'`);
      }
      if (!this.#startsRequirement()) {
        throw new SelectorError(`found '${this.#next.text}', expected: identifier after ','`);
      }
    }
  }

  get #next(): Token {
    return this.#tokens[this.#position] ?? { kind: 'end', text: '' };
  }

  #take(): Token {
    const token = this.#next;
    this.#position += 1;
    return token;
  }

  #startsRequirement(): boolean {
    return this.#next.kind === 'identifier' || isSymbol(this.#next, '!');
  }

  #requirement(): LabelRequirement {
    const isNegated = isSymbol(this.#next, '!');
    if (isNegated) {
      this.#take();
    }
    const key = this.#identifier();
    const problems = qualifiedNameProblems(key);
    if (problems.length > 0) {
      throw new SelectorError(`<nil>: ${invalid('', key, problems.join('; ')).message}`);
    }
    if (isNegated || this.#next.kind === 'end' || isSymbol(this.#next, ',')) {
      return checkedRequirement(key, isNegated ? '!' : 'exists', []);
    }
    const found = this.#take();
    const operator = BINARY_OPERATORS.get(found.text);
    if (operator === undefined) {
      throw new SelectorError(`found '${found.text}', expected: in, notin, =, ==, !=, gt, lt`);
    }
    const values = operator === 'in' || operator === 'notin' ? this.#values() : [this.#exactValue()];
    return checkedRequirement(key, operator, values);
  }

  #identifier(): string {
    const token = this.#take();
    if (token.kind !== 'identifier') {
      throw new SelectorError(`found '${token.text}', expected: identifier`);
    }
    return token.text;
  }

  #exactValue(): string {
    return this.#next.kind === 'end' || isSymbol(this.#next, ',') ? '' : this.#identifier();
  }

  /** `(a,b)`; empty values are allowed, also as `()`. */
  #values(): readonly string[] {
    const open = this.#take();
    if (!isSymbol(open, '(')) {
      throw new SelectorError(`found '${open.text}' expected: '('`);
    }
    if (isSymbol(this.#next, ')')) {
      this.#take();
      return [''];
    }
    if (this.#next.kind !== 'identifier' && !isSymbol(this.#next, ',')) {
      throw new SelectorError(`found '${this.#next.text}', expected: ',', ')' or identifier`);
    }
    const values = new Set<string>();
    for (;;) {
      if (this.#next.kind !== 'identifier' && !isSymbol(this.#next, ',') && !isSymbol(this.#next, ')')) {
        throw new SelectorError(`found '${this.#next.text}', expected: ',', or identifier`);
      }
      values.add(this.#next.kind === 'identifier' ? this.#take().text : '');
      const token = this.#take();
      if (isSymbol(token, ')')) {
        return [...values].toSorted(compareStrings);
      }
      if (!isSymbol(token, ',')) {
        throw new SelectorError(`found '${token.text}', expected: ',' or ')'`);
      }
    }
  }
}

function isSymbol(token: Token, text: string): boolean {
  return token.kind === 'symbol' && token.text === text;
}
