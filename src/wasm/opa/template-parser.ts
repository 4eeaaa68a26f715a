import { undefinedBecause } from './builtin.ts';
import type { RegoValue } from './value.ts';

/** A part of a pipeline's command. */
export type Operand =
  | { readonly kind: 'constant'; readonly value: Constant }
  /** `.a.b` or, with a variable, `$x.a.b`. */
  | { readonly kind: 'path'; readonly variable: string | undefined; readonly fields: readonly string[] }
  | { readonly kind: 'function'; readonly name: string }
  | { readonly kind: 'pipeline'; readonly pipeline: Pipeline; readonly fields: readonly string[] };

/** A literal. Numbers of the template are Go's; numbers of the data are texts to Go. */
export type Constant = string | boolean | bigint | { readonly float: number };

export interface Pipeline {
  /** Variables that the value is given to. */
  readonly names: readonly string[];
  readonly isAssignment: boolean;
  readonly commands: readonly (readonly Operand[])[];
}

export type Branch = 'if' | 'range' | 'with';

export type TemplateNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'action'; readonly pipeline: Pipeline }
  | {
      readonly kind: Branch;
      readonly pipeline: Pipeline;
      readonly body: readonly TemplateNode[];
      readonly otherwise: readonly TemplateNode[];
    }
  | { readonly kind: 'break' | 'continue' };

/** Values that a template works with: those of Rego, and Go's numbers. */
export type TemplateValue = RegoValue | bigint | { readonly float: number } | undefined;

/** Nesting of actions and parentheses that is parsed. */
const MAX_DEPTH = 100;

const ACTION =
  /\{\{(- )?[ \t\r\n]*(?:(\/\*[\s\S]*?\*\/)[ \t\r\n]*|((?:"(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]|\\.)+'|(?!\}\}| -\}\})[^"`'])*?))( -)?\}\}/y;
const TOKEN =
  /\s*(?:("(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]|\\.)+')|(\$\w*(?:\.[\p{L}_][\p{L}\p{Nd}_]*)*)|((?:\.[\p{L}_][\p{L}\p{Nd}_]*)+|\.)(?!\d)|([+-]?(?:0[xX][0-9a-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+))|([\p{L}_][\p{L}\p{Nd}_]*)|(:=|[|(),=]))/uy;

interface Token {
  readonly text: string;
  readonly kind: 'quoted' | 'variable' | 'field' | 'number' | 'word' | 'sign';
  readonly spaced: boolean;
}

/** Go's text/template, without definitions of further templates. @throws BuiltinError `operand-value` */
export function parseTemplate(text: string): readonly TemplateNode[] {
  return new TemplateParser(pieces(text)).parse();
}

type Piece = { readonly text: string } | { readonly action: readonly Token[] };

function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  let trimsLeft = false;
  while (at < text.length) {
    const open = text.indexOf('{{', at);
    const end = open === -1 ? text.length : open;
    let plain = text.slice(at, end);
    plain = trimsLeft ? plain.replace(/^[ \t\r\n]+/, '') : plain;
    if (open === -1) {
      found.push({ text: plain });
      break;
    }
    ACTION.lastIndex = open;
    const [whole = '', trimsBefore, comment, code = '', trimsAfter] = ACTION.exec(text) ?? fail('an action has no end');
    found.push({ text: trimsBefore === undefined ? plain : plain.replace(/[ \t\r\n]+$/, '') });
    if (comment === undefined) {
      found.push({ action: tokensOf(code) });
    }
    trimsLeft = trimsAfter !== undefined;
    at = open + whole.length;
  }
  return found;
}

const TOKEN_KINDS = ['quoted', 'variable', 'field', 'number', 'word', 'sign'] as const;

function tokensOf(code: string): Token[] {
  const tokens: Token[] = [];
  const text = code.trimEnd();
  TOKEN.lastIndex = 0;
  while (TOKEN.lastIndex < text.length) {
    const from = TOKEN.lastIndex;
    const match = TOKEN.exec(text) ?? fail('unexpected character');
    const index = match.slice(1).findIndex((group) => group !== undefined);
    tokens.push({
      text: match[index + 1] ?? '',
      kind: TOKEN_KINDS[index] ?? 'sign',
      spaced: /^\s/.test(text.slice(from)) || from === 0,
    });
  }
  return tokens;
}

class TemplateParser {
  readonly #pieces: readonly Piece[];
  #at = 0;
  #depth = 0;
  #loops = 0;
  #tokens: readonly Token[] = [];
  #token = 0;
  #names: string[] = ['$'];

  constructor(all: readonly Piece[]) {
    this.#pieces = all;
  }

  parse(): readonly TemplateNode[] {
    const nodes = this.#list();
    return this.#at > this.#pieces.length ? nodes : fail('unexpected end or else');
  }

  /** Nodes up to `end`, `else` or the end of the template, whose tokens are left to the caller. */
  #list(): TemplateNode[] {
    const nodes: TemplateNode[] = [];
    const names = this.#names.length;
    for (;;) {
      const piece = this.#pieces[this.#at];
      this.#at += 1;
      if (piece === undefined) {
        return nodes;
      }
      if ('text' in piece) {
        nodes.push({ kind: 'text', text: piece.text });
        continue;
      }
      this.#tokens = piece.action;
      this.#token = 0;
      const word = this.#peek()?.kind === 'word' ? this.#peek()?.text : undefined;
      if (word === 'end' || word === 'else') {
        this.#names.length = names;
        return nodes;
      }
      nodes.push(this.#action(word));
    }
  }

  #action(word: string | undefined): TemplateNode {
    switch (word) {
      case 'if':
      case 'range':
      case 'with':
        this.#token += 1;
        return this.#branch(word);
      case 'break':
      case 'continue':
        this.#token += 1;
        this.#expectEnd();
        return this.#loops > 0 ? { kind: word } : fail(`${word} outside of range`);
      case 'define':
      case 'template':
      case 'block':
        return fail(`${word} is not supported`);
      default: {
        const pipeline = this.#pipeline();
        this.#expectEnd();
        return { kind: 'action', pipeline };
      }
    }
  }

  #branch(kind: Branch): TemplateNode {
    this.#enter();
    const names = this.#names.length;
    const pipeline = this.#pipeline(kind === 'range');
    this.#expectEnd();
    this.#loops += kind === 'range' ? 1 : 0;
    const body = this.#list();
    this.#loops -= kind === 'range' ? 1 : 0;
    let otherwise: readonly TemplateNode[] = [];
    if (this.#take('else')) {
      const next = this.#peek()?.text;
      if (next !== undefined && next === kind && kind !== 'range') {
        this.#token += 1;
        otherwise = [this.#branch(kind)];
        this.#names.length = names;
        this.#depth -= 1;
        return { kind, pipeline, body, otherwise };
      }
      this.#expectEnd();
      otherwise = this.#list();
    }
    if (this.#at > this.#pieces.length || !this.#take('end')) {
      return fail('end is missing');
    }
    this.#expectEnd();
    this.#names.length = names;
    this.#depth -= 1;
    return { kind, pipeline, body, otherwise };
  }

  #enter(): void {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) {
      fail('nested too deep');
    }
  }

  #pipeline(isRange = false): Pipeline {
    const names: string[] = [];
    const first = this.#peek();
    const second = this.#tokens[this.#token + 1]?.text ?? '';
    let isAssignment = false;
    if (first?.kind === 'variable' && [':=', '=', ','].includes(second)) {
      names.push(first.text);
      this.#token += 1;
      if (this.#take(',')) {
        const other = this.#peek();
        names.push(isRange && other?.kind === 'variable' ? other.text : fail('too many variables'));
        this.#token += 1;
      }
      isAssignment = this.#take('=');
      if (!isAssignment && !this.#take(':=')) {
        fail('expected :=');
      }
    }
    const commands = [this.#command()];
    while (this.#take('|')) {
      commands.push(this.#command());
    }
    if (isAssignment && !names.every((name) => this.#names.includes(name))) {
      fail('undefined variable');
    }
    this.#names.push(...names);
    return { names, isAssignment, commands };
  }

  #command(): readonly Operand[] {
    const operands: Operand[] = [];
    for (
      let token = this.#peek();
      token !== undefined && !['|', ')'].includes(token.kind === 'sign' ? token.text : '');
      token = this.#peek()
    ) {
      if (operands.length > 0 && !token.spaced) {
        fail('operands must be separated');
      }
      operands.push(this.#operand(token));
    }
    return operands.length > 0 ? operands : fail('a command is missing');
  }

  #operand(token: Token): Operand {
    this.#token += 1;
    switch (token.kind) {
      case 'quoted':
        return { kind: 'constant', value: unquote(token.text) };
      case 'number':
        return {
          kind: 'constant',
          value: /^[+-]?(?:\d+|0[xX].*)$/.test(token.text) ? integer(token.text) : { float: Number(token.text) },
        };
      case 'variable': {
        const [name = '', ...fields] = token.text.split('.');
        return this.#names.includes(name) ? { kind: 'path', variable: name, fields } : fail('undefined variable');
      }
      case 'field':
        return { kind: 'path', variable: undefined, fields: token.text === '.' ? [] : token.text.slice(1).split('.') };
      case 'word':
        return token.text === 'true' || token.text === 'false'
          ? { kind: 'constant', value: token.text === 'true' }
          : { kind: 'function', name: token.text };
      default:
        return token.text === '(' ? this.#parenthesis() : fail(`unexpected ${token.text}`);
    }
  }

  #parenthesis(): Operand {
    this.#enter();
    const pipeline = this.#pipeline();
    if (!this.#take(')')) {
      fail('a parenthesis is not closed');
    }
    this.#depth -= 1;
    const next = this.#peek();
    if (next?.kind !== 'field' || next.spaced) {
      return { kind: 'pipeline', pipeline, fields: [] };
    }
    this.#token += 1;
    return { kind: 'pipeline', pipeline, fields: next.text.slice(1).split('.') };
  }

  #peek(): Token | undefined {
    return this.#tokens[this.#token];
  }

  #take(text: string): boolean {
    const token = this.#peek();
    const taken = token?.text === text && token.kind !== 'quoted';
    this.#token += taken ? 1 : 0;
    return taken;
  }

  #expectEnd(): void {
    if (this.#peek() !== undefined) {
      fail('unexpected operand');
    }
  }
}

function integer(text: string): bigint {
  const magnitude = BigInt(text.replace(/^[+-]/, ''));
  return text.startsWith('-') ? -magnitude : magnitude;
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['a', '\u0007'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
]);

/** The value of a Go literal; a character is a number. */
function unquote(literal: string): Constant {
  const inner = literal.slice(1, -1);
  if (literal.startsWith('`')) {
    return inner;
  }
  const text = inner.replace(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/gu,
    (_, x?: string, u?: string, long?: string, other?: string) => {
      const code = x ?? u ?? long;
      if (code !== undefined) {
        const value = Number.parseInt(code, 16);
        return value <= 0x10ffff ? String.fromCodePoint(value) : fail('bad escape');
      }
      return ESCAPES.get(other ?? '') ?? (/^[\\"']$/.test(other ?? '') ? (other ?? '') : fail('bad escape'));
    },
  );
  return literal.startsWith("'") ? BigInt(text.codePointAt(0) ?? 0) : text;
}

function fail(message: string): never {
  return undefinedBecause(`not a valid template: ${message}`);
}
