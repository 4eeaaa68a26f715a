import { failTemplate, TemplateError, withLine } from './errors.ts';
import { BUILTIN_FUNCTIONS, entryOf, isTrue, NO_VALUE } from './template-functions.ts';
import type { TemplateFunction } from './template-functions.ts';
import { chargeValue, stepsToRead } from './template-meter.ts';
import type { TemplateMeter } from './template-meter.ts';
import { parseTemplate } from './template-parser.ts';
import type { Delimiters } from './template-lexer.ts';
import type { BranchNode, Operand, ParsedTemplate, Pipeline, TemplateNode } from './template-parser.ts';
import { isGoList, isGoObject, isIntegerNumber } from '../value.ts';
import type { GoObject, GoValue } from '../value.ts';
import { sortedEntries, valueText } from '../value-text.ts';

/** Functions by the names that templates call them by. */
export type TemplateFunctions = ReadonlyMap<string, TemplateFunction>;

/** Functions that evaluate their operands one by one. */
const SHORT_CIRCUIT: ReadonlySet<string> = new Set(['and', 'or']);

/** Functions that read all of a value that they are given, however deep. */
const DEEP_READERS: ReadonlySet<string> = new Set(['print', 'println', 'printf', 'html', 'js', 'urlquery']);

/** A piece of what a template makes: a text of the template itself, or what an action wrote. */
export interface TemplatePart {
  readonly text: string;
  /** Absent for the texts of the template. */
  readonly action?: {
    readonly value: GoValue;
    /** The function that was called last; undefined for a value that no function made. */
    readonly functionName: string | undefined;
  };
}

/**
 * A template of Go's text/template: https://pkg.go.dev/text/template. Not supported: `call`, complex numbers, methods,
 * and channels; a map without the key of a field gives no value (`missingkey=default`).
 */
export class Template {
  readonly #parsed: ParsedTemplate;
  readonly #functions: TemplateFunctions;

  /**
   * Parses a template, in time linear in its length.
   * @param functions in addition to Go's own, or instead of them where the names are equal
   * @param delimiters instead of `{{` and `}}`
   * @throws TemplateError `template-invalid`; UnknownFunctionError
   */
  constructor(text: string, functions: TemplateFunctions = new Map(), delimiters?: Delimiters) {
    this.#functions = functions;
    const isKnown = (name: string): boolean =>
      functions.has(name) || BUILTIN_FUNCTIONS.has(name) || SHORT_CIRCUIT.has(name);
    this.#parsed = parseTemplate(text, isKnown, delimiters);
  }

  /**
   * Executes the template with the data as `.` and `$`.
   * @param meter throws when the execution takes too long, or makes too much text
   * @throws TemplateError `template-failed`, and errors of the meter and the functions
   */
  execute(data: GoValue, meter: TemplateMeter): string {
    return this.parts(data, meter)
      .map(({ text }) => text)
      .join('');
  }

  /**
   * {@link execute}, with the text of each action apart.
   * @param dataType of a struct, a field that it does not have is an error
   */
  parts(data: GoValue, meter: TemplateMeter, dataType: 'map' | 'struct' = 'map'): readonly TemplatePart[] {
    const execution = new Execution(data, this.#functions, meter, this.#parsed.definitions, dataType === 'struct');
    return execution.run(this.#parsed.nodes);
  }
}

/** Maximum number of iterations of a range over an integer. */
const MAX_RANGE = 1_000_000;

/**
 * Deepest nesting of actions while they are executed, where templates may execute themselves. Far above that of
 * templates that people write; half of what the stack of a thread holds.
 */
const MAX_EXECUTION_DEPTH = 500;

interface Variable {
  readonly name: string;
  value: GoValue;
}

type Jump = 'break' | 'continue' | undefined;

class Execution {
  readonly #functions: TemplateFunctions;
  readonly #meter: TemplateMeter;
  readonly #definitions: ParsedTemplate['definitions'];
  readonly #data: GoValue;
  readonly #isStruct: boolean;
  #variables: Variable[];
  readonly #output: TemplatePart[] = [];
  #line = 1;
  #depth = 0;

  constructor(
    data: GoValue,
    functions: TemplateFunctions,
    meter: TemplateMeter,
    definitions: ParsedTemplate['definitions'],
    isStruct: boolean,
  ) {
    this.#data = data;
    this.#isStruct = isStruct;
    this.#functions = functions;
    this.#meter = meter;
    this.#definitions = definitions;
    this.#variables = [{ name: '$', value: data }];
  }

  run(nodes: readonly TemplateNode[]): readonly TemplatePart[] {
    try {
      this.#walk(nodes, this.#data);
    } catch (error) {
      throw withLine(error, this.#line);
    }
    return this.#output;
  }

  #put(part: TemplatePart): void {
    this.#meter.chars(part.text.length);
    this.#output.push(part);
  }

  #write(value: GoValue, pipeline: Pipeline): void {
    chargeValue(value, this.#meter);
    const last = pipeline.commands.at(-1)?.[0];
    this.#put({
      text: value === undefined || value === null ? NO_VALUE : valueText(value),
      action: { value, functionName: last?.kind === 'function' ? last.name : undefined },
    });
  }

  #walk(nodes: readonly TemplateNode[], dot: GoValue): Jump {
    this.#depth += 1;
    if (this.#depth > MAX_EXECUTION_DEPTH) {
      throw new TemplateError('template-limit', `the template is nested deeper than ${MAX_EXECUTION_DEPTH} actions`);
    }
    const jump = this.#list(nodes, dot);
    this.#depth -= 1;
    return jump;
  }

  #list(nodes: readonly TemplateNode[], dot: GoValue): Jump {
    const mark = this.#variables.length;
    for (const node of nodes) {
      this.#meter.steps(1);
      const jump = this.#node(node, dot);
      if (jump !== undefined) {
        this.#variables.length = mark;
        return jump;
      }
    }
    this.#variables.length = mark;
    return undefined;
  }

  #node(node: TemplateNode, dot: GoValue): Jump {
    if ('line' in node) {
      this.#line = node.line;
    }
    switch (node.kind) {
      case 'text':
        this.#put({ text: node.text });
        return undefined;
      case 'action': {
        const value = this.#pipeline(node.pipeline, dot);
        if (node.pipeline.names.length === 0) {
          this.#write(value, node.pipeline);
        }
        return undefined;
      }
      case 'template':
        this.#template(node.name, node.pipeline === undefined ? undefined : this.#pipeline(node.pipeline, dot));
        return undefined;
      case 'break':
      case 'continue':
        return node.kind;
      case 'range':
        return this.#range(node, dot);
      default:
        return this.#branch(node, dot);
    }
  }

  /** Executes another template, which sees no variables but `$`: its own data. */
  #template(name: string, data: GoValue): void {
    const nodes = this.#definitions.get(name) ?? failTemplate(`there is no template ${name}`);
    const variables = this.#variables;
    this.#variables = [{ name: '$', value: data }];
    this.#walk(nodes, data);
    this.#variables = variables;
  }

  #branch(node: BranchNode, dot: GoValue): Jump {
    const mark = this.#variables.length;
    const value = this.#pipeline(node.pipeline, dot);
    const jump = this.#isTrue(value)
      ? this.#walk(node.body, node.kind === 'with' ? value : dot)
      : this.#walk(node.otherwise, dot);
    this.#variables.length = mark;
    return jump;
  }

  #range(node: BranchNode, dot: GoValue): Jump {
    const mark = this.#variables.length;
    const { names, isAssignment } = node.pipeline;
    const value = this.#pipeline({ ...node.pipeline, names: [] }, dot);
    if (names.length > 1 && isInteger(value)) {
      failTemplate('a range over an integer has one variable');
    }
    const items = this.#items(value);
    for (const [key, item] of items) {
      const values = names.length === 2 ? [key, item] : [item];
      for (const [index, name] of names.entries()) {
        this.#set(name, values[index], isAssignment);
      }
      if (this.#walk(node.body, item) === 'break') {
        break;
      }
      this.#variables.length = mark;
    }
    this.#variables.length = mark;
    return items.length === 0 ? this.#walk(node.otherwise, dot) : undefined;
  }

  #set(name: string, value: GoValue, isAssignment: boolean): void {
    const known = isAssignment ? this.#variables.findLast((variable) => variable.name === name) : undefined;
    if (known === undefined) {
      this.#variables.push({ name, value });
    } else {
      known.value = value;
    }
  }

  #pipeline(pipeline: Pipeline, dot: GoValue): GoValue {
    let value: GoValue;
    for (const [index, command] of pipeline.commands.entries()) {
      value = this.#command(command, dot, index === 0 ? [] : [value]);
    }
    for (const name of pipeline.names) {
      this.#set(name, value, pipeline.isAssignment);
    }
    return value;
  }

  /** @param piped the value of the command before, as last argument */
  #command(command: readonly Operand[], dot: GoValue, piped: readonly GoValue[]): GoValue {
    const [head, ...rest] = command;
    if (head?.kind === 'function') {
      return this.#call(head.name, rest, dot, piped);
    }
    return head !== undefined && rest.length + piped.length === 0
      ? this.#operand(head, dot)
      : failTemplate('a value cannot be called');
  }

  #call(name: string, operands: readonly Operand[], dot: GoValue, piped: readonly GoValue[]): GoValue {
    if (name === 'and' || name === 'or') {
      return this.#shortCircuit(name, operands, dot, piped);
    }
    const values = [...operands.map((operand) => this.#operand(operand, dot)), ...piped];
    this.#meter.steps(values.reduce((steps: number, value) => steps + stepsToRead(value), 1));
    if (DEEP_READERS.has(name)) {
      values.forEach((value) => chargeValue(value, this.#meter));
    }
    const call =
      this.#functions.get(name) ?? BUILTIN_FUNCTIONS.get(name) ?? failTemplate(`there is no function ${name}`);
    return call(values, this.#meter.chars);
  }

  #isTrue(value: GoValue): boolean {
    this.#meter.steps(stepsToRead(value));
    return isTrue(value);
  }

  /** Keys and values that a range iterates over. */
  #items(value: GoValue): readonly (readonly [GoValue, GoValue])[] {
    if (value === undefined || value === null) {
      return [];
    }
    if (isInteger(value)) {
      const length = Math.max(Number(value), 0);
      this.#meter.steps(length > MAX_RANGE ? failTemplate(`range over more than ${MAX_RANGE} numbers`) : length);
      return Array.from({ length }, (_, index) => [BigInt(index), BigInt(index)]);
    }
    if (isGoObject(value)) {
      const entries = sortedEntries(value);
      this.#meter.steps(entries.length);
      return entries;
    }
    if (!isGoList(value)) {
      return failTemplate('range over a value that is no list');
    }
    this.#meter.steps(value.length);
    return value.map((item, index) => [BigInt(index), item]);
  }

  /** Later operands are not evaluated once the result is known. */
  #shortCircuit(name: 'and' | 'or', operands: readonly Operand[], dot: GoValue, piped: readonly GoValue[]): GoValue {
    let value: GoValue = operands.length + piped.length === 0 ? failTemplate(`${name} needs an operand`) : undefined;
    for (const operand of operands) {
      value = this.#operand(operand, dot);
      if (this.#isTrue(value) === (name === 'or')) {
        return value;
      }
    }
    return piped.length > 0 ? piped[0] : value;
  }

  #operand(operand: Operand, dot: GoValue): GoValue {
    this.#meter.steps(1);
    switch (operand.kind) {
      case 'constant':
        return operand.value;
      case 'function':
        return this.#call(operand.name, [], dot, []);
      case 'pipeline':
        return this.#fields(this.#pipeline(operand.pipeline, dot), operand.fields);
      default: {
        const start =
          operand.variable === undefined
            ? dot
            : this.#variables.findLast(({ name }) => name === operand.variable)?.value;
        return this.#fields(start, operand.fields);
      }
    }
  }

  #fields(value: GoValue, fields: readonly string[]): GoValue {
    this.#meter.steps(fields.length);
    let at = value;
    for (const field of fields) {
      if (at === undefined) {
        return undefined;
      }
      if (!isGoObject(at)) {
        return failTemplate(`there is no field ${field}`);
      }
      if (this.#isStruct && at === this.#data && !Object.hasOwn(at, field)) {
        return failTemplate(`can't evaluate field ${field}: the variables are ${variablesText(at)}`);
      }
      at = entryOf(at, field);
    }
    return at;
  }
}

function variablesText(data: GoObject): string {
  const names = Object.keys(data);
  return names.length === 0 ? 'none' : names.join(', ');
}

function isInteger(value: GoValue): value is bigint | number {
  return typeof value === 'bigint' || (typeof value === 'number' && isIntegerNumber(value));
}
