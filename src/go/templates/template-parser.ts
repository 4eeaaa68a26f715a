import { invalidTemplate, UnknownFunctionError } from './errors.ts';
import { lexTemplate } from './template-lexer.ts';
import type { Delimiters, Piece, TemplateToken } from './template-lexer.ts';
import { floatLiteral, integerLiteral, quotedLiteral } from './template-literal.ts';
import type { Constant } from './template-literal.ts';

/** A part of a pipeline's command. */
export type Operand =
  | { readonly kind: 'constant'; readonly value: Constant }
  /** `.a.b` or, with a variable, `$x.a.b`. */
  | { readonly kind: 'path'; readonly variable: string | undefined; readonly fields: readonly string[] }
  | { readonly kind: 'function'; readonly name: string }
  | { readonly kind: 'pipeline'; readonly pipeline: Pipeline; readonly fields: readonly string[] };

export interface Pipeline {
  /** Variables that are assigned. */
  readonly names: readonly string[];
  readonly isAssignment: boolean;
  readonly commands: readonly (readonly Operand[])[];
}

type Branch = 'if' | 'range' | 'with';

export interface BranchNode {
  readonly kind: Branch;
  readonly line: number;
  readonly pipeline: Pipeline;
  readonly body: readonly TemplateNode[];
  /** The nodes after `else`. */
  readonly otherwise: readonly TemplateNode[];
}

export type TemplateNode =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'action'; readonly line: number; readonly pipeline: Pipeline }
  | BranchNode
  /** Executes another template; without a pipeline, its data is nothing. */
  | { readonly kind: 'template'; readonly line: number; readonly name: string; readonly pipeline: Pipeline | undefined }
  | { readonly kind: 'break' | 'continue' };

/** A template, and those that `define` and `block` name. */
export interface ParsedTemplate {
  readonly nodes: readonly TemplateNode[];
  readonly definitions: ReadonlyMap<string, readonly TemplateNode[]>;
}

/** Deepest nesting of actions and parentheses. */
const MAX_DEPTH = 100;

/** Most variables that are visible at once; each use searches them. */
const MAX_VARIABLES = 1000;

/**
 * Parses Go's text/template.
 * @param isFunction whether a name may be called
 * @throws TemplateError `template-invalid`; UnknownFunctionError
 */
export function parseTemplate(
  text: string,
  isFunction: (name: string) => boolean,
  delimiters?: Delimiters,
): ParsedTemplate {
  return new TemplateParser(lexTemplate(text, delimiters), isFunction).parse();
}

class TemplateParser {
  readonly #pieces: readonly Piece[];
  readonly #isFunction: (name: string) => boolean;
  #at = 0;
  #depth = 0;
  #loops = 0;
  #tokens: readonly TemplateToken[] = [];
  #token = 0;
  #line = 1;
  #names: string[] = ['$'];
  readonly #definitions = new Map<string, readonly TemplateNode[]>();

  constructor(pieces: readonly Piece[], isFunction: (name: string) => boolean) {
    this.#pieces = pieces;
    this.#isFunction = isFunction;
  }

  parse(): ParsedTemplate {
    const nodes = this.#list();
    return this.#at > this.#pieces.length
      ? { nodes, definitions: this.#definitions }
      : this.#invalid('unexpected end or else');
  }

  #invalid(message: string): never {
    return invalidTemplate(message, this.#line);
  }

  /** Nodes up to `end`, `else` or the end of the template. The caller reads that action. */
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
      this.#line = piece.line;
      const word = this.#peek()?.kind === 'word' ? this.#peek()?.text : undefined;
      if (word === 'end' || word === 'else') {
        this.#names.length = names;
        return nodes;
      }
      if (word === 'define') {
        this.#define();
      } else {
        nodes.push(this.#action(word));
      }
    }
  }

  #action(word: string | undefined): TemplateNode {
    const line = this.#line;
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
        return this.#loops > 0 ? { kind: word } : this.#invalid(`${word} outside of range`);
      case 'template': {
        this.#token += 1;
        const name = this.#templateName();
        const pipeline = this.#peek() === undefined ? undefined : this.#pipeline();
        this.#expectEnd();
        return { kind: 'template', line, name, pipeline };
      }
      case 'block': {
        this.#token += 1;
        const name = this.#templateName();
        const pipeline = this.#pipeline();
        this.#expectEnd();
        this.#definition(name);
        return { kind: 'template', line, name, pipeline };
      }
      default: {
        const pipeline = this.#pipeline();
        this.#expectEnd();
        return { kind: 'action', line, pipeline };
      }
    }
  }

  /** `define` stands outside of all other actions. */
  #define(): void {
    if (this.#depth > 0) {
      this.#invalid('define inside of another action');
    }
    this.#token += 1;
    const name = this.#templateName();
    this.#expectEnd();
    this.#definition(name);
  }

  #templateName(): string {
    const token = this.#peek();
    const name = token?.kind === 'quoted' ? quotedLiteral(token.text) : undefined;
    this.#token += 1;
    return typeof name === 'string' ? name : this.#invalid('the name of a template must be a quoted text');
  }

  /** Reads a template up to its `end`. It sees no variables but `$`. */
  #definition(name: string): void {
    this.#enter();
    const [names, loops] = [this.#names, this.#loops];
    this.#names = ['$'];
    this.#loops = 0;
    const nodes = this.#list();
    if (this.#at > this.#pieces.length || !this.#take('end')) {
      this.#invalid('end is missing');
    }
    this.#expectEnd();
    this.#names = names;
    this.#loops = loops;
    this.#depth -= 1;
    this.#add(name, nodes);
  }

  /** As in Go, a template without content gives way to another of its name. */
  #add(name: string, nodes: readonly TemplateNode[]): void {
    const known = this.#definitions.get(name);
    if (known === undefined || isBlank(known)) {
      this.#definitions.set(name, nodes);
    } else if (!isBlank(nodes)) {
      this.#invalid(`there are two templates ${name}`);
    }
  }

  #branch(kind: Branch): TemplateNode {
    const line = this.#line;
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
        return { kind, line, pipeline, body, otherwise };
      }
      this.#expectEnd();
      otherwise = this.#list();
    }
    if (this.#at > this.#pieces.length || !this.#take('end')) {
      return this.#invalid('end is missing');
    }
    this.#expectEnd();
    this.#names.length = names;
    this.#depth -= 1;
    return { kind, line, pipeline, body, otherwise };
  }

  #enter(): void {
    this.#depth += 1;
    if (this.#depth > MAX_DEPTH) {
      this.#invalid('nested too deep');
    }
  }

  #pipeline(isRange = false): Pipeline {
    const names: string[] = [];
    const first = this.#peek();
    const second = this.#tokens[this.#token + 1]?.text ?? '';
    let isAssignment = false;
    if (first?.kind === 'variable' && !first.text.includes('.') && [':=', '=', ','].includes(second)) {
      names.push(first.text);
      this.#token += 1;
      if (this.#take(',')) {
        const other = this.#peek();
        names.push(isRange && other?.kind === 'variable' ? other.text : this.#invalid('too many variables'));
        this.#token += 1;
      }
      isAssignment = this.#take('=');
      if (!isAssignment && !this.#take(':=')) {
        this.#invalid('expected :=');
      }
    }
    const commands = [this.#command()];
    while (this.#take('|')) {
      const command = this.#command();
      if (command[0]?.kind === 'constant') {
        this.#invalid('a value cannot be called');
      }
      commands.push(command);
    }
    if (isAssignment && !names.every((name) => this.#names.includes(name))) {
      this.#invalid('undefined variable');
    }
    this.#names.push(...names);
    if (this.#names.length > MAX_VARIABLES) {
      this.#invalid('too many variables');
    }
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
        this.#invalid('operands must be separated');
      }
      operands.push(this.#operand(token));
    }
    const [first] = operands;
    if (first === undefined || (first.kind === 'constant' && first.value === null)) {
      this.#invalid('a command is missing');
    }
    return operands;
  }

  #operand(token: TemplateToken): Operand {
    this.#token += 1;
    switch (token.kind) {
      case 'quoted':
        return { kind: 'constant', value: quotedLiteral(token.text) };
      case 'number':
        return { kind: 'constant', value: integerLiteral(token.text) ?? floatLiteral(token.text) };
      case 'variable': {
        const [name = '', ...fields] = token.text.split('.');
        return this.#names.includes(name)
          ? { kind: 'path', variable: name, fields }
          : this.#invalid('undefined variable');
      }
      case 'field':
        return { kind: 'path', variable: undefined, fields: token.text === '.' ? [] : token.text.slice(1).split('.') };
      case 'word':
        return this.#word(token.text);
      default:
        return token.text === '(' ? this.#parenthesis() : this.#invalid(`unexpected ${token.text}`);
    }
  }

  #word(word: string): Operand {
    switch (word) {
      case 'true':
      case 'false':
        return { kind: 'constant', value: word === 'true' };
      case 'nil':
        return { kind: 'constant', value: null };
      default:
        return this.#isFunction(word) ? { kind: 'function', name: word } : unknownFunction(word, this.#line);
    }
  }

  #parenthesis(): Operand {
    this.#enter();
    const pipeline = this.#pipeline();
    if (!this.#take(')')) {
      this.#invalid('a parenthesis is not closed');
    }
    this.#depth -= 1;
    const next = this.#peek();
    if (next?.kind !== 'field' || next.spaced) {
      return { kind: 'pipeline', pipeline, fields: [] };
    }
    this.#token += 1;
    return { kind: 'pipeline', pipeline, fields: next.text.slice(1).split('.') };
  }

  #peek(): TemplateToken | undefined {
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
      this.#invalid('unexpected operand');
    }
  }
}

function isBlank(nodes: readonly TemplateNode[]): boolean {
  return nodes.every((node) => node.kind === 'text' && node.text.trim() === '');
}

function unknownFunction(name: string, line: number): never {
  throw new UnknownFunctionError(name, line);
}
