import { failTemplate } from './errors.ts';
import { BUILTIN_FUNCTIONS, entryOf, isTrue, NO_VALUE } from './template-functions.ts';
import type { TemplateFunction } from './template-functions.ts';
import { stepsToRead } from './template-meter.ts';
import type { TemplateMeter } from './template-meter.ts';
import { parseTemplate } from './template-parser.ts';
import type { BranchNode, Operand, Pipeline, TemplateNode } from './template-parser.ts';
import { isGoList, isGoObject, isIntegerNumber } from './value.ts';
import type { GoValue } from './value.ts';
import { sortedEntries, valueText } from './value-text.ts';

/** Functions by the names that templates call them by. */
export type TemplateFunctions = ReadonlyMap<string, TemplateFunction>;

/** Functions that evaluate their operands one by one. */
const SHORT_CIRCUIT: ReadonlySet<string> = new Set(['and', 'or']);

/**
 * A template of Go's text/template: https://pkg.go.dev/text/template. Not supported: `define`, `template`, `block`,
 * `call`, complex numbers, methods, and channels; a map without the key of a field gives no value (`missingkey=default`).
 */
export class Template {
  readonly #nodes: readonly TemplateNode[];
  readonly #functions: TemplateFunctions;

  /**
   * Parses a template, in time linear in its length.
   * @param functions in addition to Go's own, or instead of them where the names are equal
   * @throws TemplateError `template-invalid`
   */
  constructor(text: string, functions: TemplateFunctions = new Map()) {
    this.#functions = new Map([...BUILTIN_FUNCTIONS, ...functions]);
    this.#nodes = parseTemplate(text, new Set([...SHORT_CIRCUIT, ...this.#functions.keys()]));
  }

  /**
   * Executes the template with the data as `.` and `$`.
   * @param meter throws when the execution takes too long, or makes too much text
   * @throws TemplateError `template-failed`, and errors of the meter and the functions
   */
  execute(data: GoValue, meter: TemplateMeter): string {
    return new Execution(data, this.#functions, meter).run(this.#nodes);
  }
}

/** Maximum number of iterations of a range over an integer. */
const MAX_RANGE = 1_000_000;

interface Variable {
  readonly name: string;
  value: GoValue;
}

type Jump = 'break' | 'continue' | undefined;

class Execution {
  readonly #functions: TemplateFunctions;
  readonly #meter: TemplateMeter;
  readonly #data: GoValue;
  readonly #variables: Variable[];
  readonly #output: string[] = [];

  constructor(data: GoValue, functions: TemplateFunctions, meter: TemplateMeter) {
    this.#data = data;
    this.#functions = functions;
    this.#meter = meter;
    this.#variables = [{ name: '$', value: data }];
  }

  run(nodes: readonly TemplateNode[]): string {
    this.#walk(nodes, this.#data);
    return this.#output.join('');
  }

  #put(text: string): void {
    this.#meter.chars(text.length);
    this.#output.push(text);
  }

  #walk(nodes: readonly TemplateNode[], dot: GoValue): Jump {
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
    switch (node.kind) {
      case 'text':
        this.#put(node.text);
        return undefined;
      case 'action': {
        const value = this.#pipeline(node.pipeline, dot);
        if (node.pipeline.names.length === 0) {
          this.#put(value === undefined || value === null ? NO_VALUE : valueText(value));
        }
        return undefined;
      }
      case 'break':
      case 'continue':
        return node.kind;
      case 'range':
        return this.#range(node, dot);
      default:
        return this.#branch(node, dot);
    }
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
    const call = this.#functions.get(name) ?? failTemplate(`there is no function ${name}`);
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
      at = isGoObject(at) ? entryOf(at, field) : failTemplate(`there is no field ${field}`);
    }
    return at;
  }
}

function isInteger(value: GoValue): value is bigint | number {
  return typeof value === 'bigint' || (typeof value === 'number' && isIntegerNumber(value));
}
