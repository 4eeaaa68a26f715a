import { invalidTemplate } from './errors.ts';

export interface TemplateToken {
  readonly text: string;
  readonly kind: 'quoted' | 'variable' | 'field' | 'number' | 'word' | 'sign';
  /** Whether space precedes it. */
  readonly spaced: boolean;
}

/** A text, or the tokens between `{{` and `}}` with the line of `{{`. */
export type Piece = { readonly text: string } | { readonly action: readonly TemplateToken[]; readonly line: number };

/** The texts before and after each action. */
export interface Delimiters {
  readonly left: string;
  readonly right: string;
}

const DEFAULT_DELIMITERS: Delimiters = { left: '{{', right: '}}' };

const TOKEN_KINDS = ['quoted', 'variable', 'field', 'number', 'word', 'sign'] as const;

/** A group per kind. Quoted strings are matched in a form that does not recurse for each character. */
const TOKEN =
  /("[^"\\\n]*(?:\\.[^"\\\n]*)*"|`[^`]*`|'[^'\\\n]*(?:\\.[^'\\\n]*)*')|(\$\w*(?:\.[\p{L}_][\p{L}\p{Nd}_]*)*)|((?:\.[\p{L}_][\p{L}\p{Nd}_]*)+|\.)(?!\d)|([+-]?(?:0[xX][0-9a-fA-F_]+|0[bBoO][0-7_]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?|\.\d+))|([\p{L}_][\p{L}\p{Nd}_]*)|(:=|[|(),=])/uy;

/** Splits a template into texts and actions, with spaces trimmed where `{{-` and `-}}` ask for it; comments are dropped. */
export function lexTemplate(text: string, delimiters: Delimiters = DEFAULT_DELIMITERS): Piece[] {
  return new Lexer(text, delimiters).run();
}

class Lexer {
  readonly #text: string;
  readonly #delimiters: Delimiters;
  readonly #pieces: Piece[] = [];
  #at = 0;
  #line = 1;
  /** The line feeds before this index are counted. */
  #counted = 0;

  constructor(text: string, delimiters: Delimiters) {
    this.#text = text;
    this.#delimiters = delimiters;
  }

  run(): Piece[] {
    let trimsLeft = false;
    const { left } = this.#delimiters;
    while (this.#at < this.#text.length) {
      const open = this.#text.indexOf(left, this.#at);
      const end = open === -1 ? this.#text.length : open;
      const inner = end + left.length;
      const trimsRight = this.#text.charAt(inner) === '-' && isSpace(this.#text.charAt(inner + 1));
      this.#put(this.#text.slice(this.#at, end), trimsLeft, trimsRight);
      if (open === -1) {
        break;
      }
      this.#countLines(open);
      this.#at = inner + (trimsRight ? 2 : 0);
      trimsLeft = this.#text.startsWith('/*', this.#at) ? this.#comment() : this.#action();
    }
    return this.#pieces;
  }

  #put(text: string, trimsLeft: boolean, trimsRight: boolean): void {
    let kept = trimsLeft ? text.replace(/^[ \t\r\n]+/, '') : text;
    if (trimsRight) {
      let end = kept.length;
      while (end > 0 && isSpace(kept.charAt(end - 1))) {
        end -= 1;
      }
      kept = kept.slice(0, end);
    }
    this.#pieces.push({ text: kept });
  }

  /** @returns whether the spaces after it are trimmed */
  #comment(): boolean {
    const end = this.#text.indexOf('*/', this.#at + 2);
    this.#at = end === -1 ? invalidTemplate('a comment has no end', this.#line) : end + 2;
    return this.#close() ?? invalidTemplate('a comment does not fill its action', this.#line);
  }

  /** @returns whether the spaces after it are trimmed */
  #action(): boolean {
    const tokens: TemplateToken[] = [];
    this.#pieces.push({ action: tokens, line: this.#line });
    let spaced = true;
    for (;;) {
      const trims = this.#close();
      if (trims !== undefined) {
        return trims;
      }
      if (isSpace(this.#text.charAt(this.#at))) {
        this.#at += 1;
        spaced = true;
      } else {
        tokens.push(this.#token(spaced));
        spaced = false;
      }
    }
  }

  /** Reads the end of an action. @returns whether the spaces after it are trimmed; undefined when it does not end here */
  #close(): boolean | undefined {
    const { right } = this.#delimiters;
    const trims = isSpace(this.#text.charAt(this.#at)) && this.#text.startsWith(`-${right}`, this.#at + 1);
    if (!trims && !this.#text.startsWith(right, this.#at)) {
      return undefined;
    }
    this.#at += right.length + (trims ? 2 : 0);
    return trims;
  }

  #countLines(end: number): void {
    for (
      let at = this.#text.indexOf('\n', this.#counted);
      at !== -1 && at < end;
      at = this.#text.indexOf('\n', at + 1)
    ) {
      this.#line += 1;
    }
    this.#counted = end;
  }

  #token(spaced: boolean): TemplateToken {
    if (this.#at >= this.#text.length) {
      return invalidTemplate('an action has no end', this.#line);
    }
    TOKEN.lastIndex = this.#at;
    const match = TOKEN.exec(this.#text) ?? invalidTemplate(`unexpected ${this.#text.charAt(this.#at)}`, this.#line);
    this.#at = TOKEN.lastIndex;
    const index = match.slice(1).findIndex((group) => group !== undefined);
    return { text: match[0], kind: TOKEN_KINDS[index] ?? 'sign', spaced };
  }
}

function isSpace(character: string): boolean {
  return character === ' ' || character === '\t' || character === '\r' || character === '\n';
}
