import { compareStrings, formatFloat, sprintf } from '../../go/index.ts';
import type { FormatArgument } from '../../go/index.ts';
import { objectOperand, stringOperand, undefinedBecause } from './builtin.ts';
import type { BuiltinContext, OpaBuiltin } from './builtin.ts';
import { queryEscape } from './encoding.ts';
import { FUEL_PER_CHAR } from './strings.ts';
import { parseTemplate } from './template-parser.ts';
import type { Operand, Pipeline, TemplateNode, TemplateValue } from './template-parser.ts';
import { isArray, RegoObject, RegoSet } from './value.ts';
import { RegoNumber } from './number.ts';
import type { RegoValue } from './value.ts';
import { MAX_RESULT_CHARS } from './value-text.ts';
import { WasmError } from '../errors.ts';

/** What Go prints for a value that is not there; OPA replaces it. */
const NO_VALUE = '<no value>';

/** Fuel for one node of a template. */
const FUEL_PER_NODE = 500;

const renderTemplate: OpaBuiltin = (operands, context) => {
  const nodes = parseTemplate(stringOperand(operands, 0));
  const data = objectOperand(operands, 1);
  refuseSets(data);
  const output = new Renderer(data, context).render(nodes);
  return output.replaceAll(NO_VALUE, '<undefined>');
};

/** OPA does not convert sets for templates. */
function refuseSets(value: RegoValue): void {
  if (value instanceof RegoSet) {
    fail('sets cannot be rendered');
  }
  const items = value instanceof RegoObject ? [...value].flat() : isArray(value) ? value : [];
  for (const item of items) {
    refuseSets(item);
  }
}

interface Variable {
  readonly name: string;
  value: TemplateValue;
}

type Jump = 'break' | 'continue' | undefined;

class Renderer {
  readonly #context: BuiltinContext;
  readonly #variables: Variable[];
  readonly #root: RegoObject;
  #output: string[] = [];
  #chars = 0;

  constructor(data: RegoObject, context: BuiltinContext) {
    this.#root = data;
    this.#context = context;
    this.#variables = [{ name: '$', value: data }];
  }

  render(nodes: readonly TemplateNode[]): string {
    this.#walk(nodes, this.#root);
    return this.#output.join('');
  }

  #put(text: string): void {
    this.#grow(text.length);
    this.#output.push(text);
  }

  #grow(chars: number): void {
    this.#chars += chars;
    if (this.#chars > MAX_RESULT_CHARS) {
      throw new WasmError('out-of-fuel', `strings.render_template: the result exceeds ${MAX_RESULT_CHARS} characters`);
    }
    this.#context.charge(chars * FUEL_PER_CHAR);
  }

  #walk(nodes: readonly TemplateNode[], dot: TemplateValue): Jump {
    const mark = this.#variables.length;
    for (const node of nodes) {
      this.#context.charge(FUEL_PER_NODE);
      const jump = this.#node(node, dot);
      if (jump !== undefined) {
        this.#variables.length = mark;
        return jump;
      }
    }
    this.#variables.length = mark;
    return undefined;
  }

  #node(node: TemplateNode, dot: TemplateValue): Jump {
    switch (node.kind) {
      case 'text':
        this.#put(node.text);
        return undefined;
      case 'action': {
        const value = this.#pipeline(node.pipeline, dot);
        if (node.pipeline.names.length === 0) {
          this.#put(print(value, true));
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

  #branch(node: TemplateNode & { kind: 'if' | 'with' | 'range' }, dot: TemplateValue): Jump {
    const mark = this.#variables.length;
    const value = this.#pipeline(node.pipeline, dot);
    const jump = isTrue(value)
      ? this.#walk(node.body, node.kind === 'with' ? value : dot)
      : this.#walk(node.otherwise, dot);
    this.#variables.length = mark;
    return jump;
  }

  #range(node: TemplateNode & { kind: 'if' | 'with' | 'range' }, dot: TemplateValue): Jump {
    const mark = this.#variables.length;
    const { names, isAssignment } = node.pipeline;
    const items = itemsOf(this.#pipeline({ ...node.pipeline, names: [] }, dot));
    for (const [key, value] of items) {
      const values = names.length === 2 ? [key, value] : [value];
      for (const [index, name] of names.entries()) {
        this.#set(name, values[index], isAssignment);
      }
      if (this.#walk(node.body, value) === 'break') {
        break;
      }
      this.#variables.length = mark;
    }
    this.#variables.length = mark;
    return items.length === 0 ? this.#walk(node.otherwise, dot) : undefined;
  }

  #set(name: string, value: TemplateValue, isAssignment: boolean): void {
    const known = isAssignment ? this.#variables.findLast((variable) => variable.name === name) : undefined;
    if (known === undefined) {
      this.#variables.push({ name, value });
    } else {
      known.value = value;
    }
  }

  #pipeline(pipeline: Pipeline, dot: TemplateValue): TemplateValue {
    let value: TemplateValue;
    for (const [index, command] of pipeline.commands.entries()) {
      value = this.#command(command, dot, index === 0 ? [] : [value]);
    }
    for (const name of pipeline.names) {
      this.#set(name, value, pipeline.isAssignment);
    }
    return value;
  }

  /** @param piped the value of the command before, as last argument */
  #command(command: readonly Operand[], dot: TemplateValue, piped: readonly TemplateValue[]): TemplateValue {
    const [head, ...rest] = command;
    if (head?.kind === 'function') {
      return this.#call(head.name, rest, dot, piped);
    }
    // Values cannot be called.
    return head !== undefined && rest.length + piped.length === 0 ? this.#operand(head, dot) : fail('not a function');
  }

  #call(
    name: string,
    operands: readonly Operand[],
    dot: TemplateValue,
    piped: readonly TemplateValue[],
  ): TemplateValue {
    if (name === 'and' || name === 'or') {
      return this.#shortCircuit(name, operands, dot, piped);
    }
    const values = [...operands.map((operand) => this.#operand(operand, dot)), ...piped];
    if (name === 'printf') {
      const [format, ...args] = values;
      return typeof format === 'string'
        ? sprintf(format, args.map(formatArgument), (chars) => this.#grow(chars))
        : fail('printf needs a format');
    }
    return (FUNCTIONS.get(name) ?? fail(`no function ${name}`))(values);
  }

  /** Later operands are not looked at once the answer is known. */
  #shortCircuit(
    name: 'and' | 'or',
    operands: readonly Operand[],
    dot: TemplateValue,
    piped: readonly TemplateValue[],
  ): TemplateValue {
    let value: TemplateValue = operands.length + piped.length === 0 ? fail(`${name} needs an operand`) : undefined;
    for (const operand of operands) {
      value = this.#operand(operand, dot);
      if (isTrue(value) === (name === 'or')) {
        return value;
      }
    }
    return piped.length > 0 ? piped[0] : value;
  }

  #operand(operand: Operand, dot: TemplateValue): TemplateValue {
    switch (operand.kind) {
      case 'constant':
        return operand.value;
      case 'function':
        return this.#call(operand.name, [], dot, []);
      case 'pipeline':
        return fieldsOf(this.#pipeline(operand.pipeline, dot), operand.fields);
      default: {
        const start =
          operand.variable === undefined
            ? dot
            : this.#variables.findLast(({ name }) => name === operand.variable)?.value;
        return fieldsOf(start, operand.fields);
      }
    }
  }
}

function fieldsOf(value: TemplateValue, fields: readonly string[]): TemplateValue {
  let at = value;
  for (const field of fields) {
    if (at === undefined || at === null) {
      return undefined;
    }
    at = at instanceof RegoObject ? at.get(field) : fail(`no field ${field}`);
  }
  return at;
}

function isList(value: TemplateValue): value is readonly RegoValue[] {
  return Array.isArray(value);
}

function isGoFloat(value: TemplateValue): value is { readonly float: number } {
  return typeof value === 'object' && value !== null && 'float' in value;
}

/** Go's truth: not empty, not zero. The data's numbers are texts to Go, and so always true. */
function isTrue(value: TemplateValue): boolean {
  if (typeof value === 'string' || isList(value)) {
    return value.length > 0;
  }
  if (value instanceof RegoObject) {
    return value.size > 0;
  }
  if (value instanceof RegoNumber) {
    return true;
  }
  return isGoFloat(value) ? value.float !== 0 : Boolean(value);
}

function itemsOf(value: TemplateValue): (readonly [TemplateValue, TemplateValue])[] {
  if (value === undefined || value === null) {
    return [];
  }
  if (value instanceof RegoObject) {
    return sortedEntries(value);
  }
  if (typeof value === 'bigint') {
    return Array.from({ length: Number(value > 0n && value < 1_000_000n ? value : 0n) }, (_, index) => [
      BigInt(index),
      BigInt(index),
    ]);
  }
  return isList(value) ? value.map((item, index) => [BigInt(index), item]) : fail('range over a scalar');
}

function sortedEntries(object: RegoObject): (readonly [string, RegoValue])[] {
  const entries = [...object].map(([key, value]): readonly [string, RegoValue] => [
    typeof key === 'string' ? key : print(key, false),
    value,
  ]);
  return entries.sort(([a], [b]) => compareStrings(a, b));
}

/** How Go prints a value; nothing at all is `<nil>` inside of other values. */
function print(value: TemplateValue, isOutermost: boolean): string {
  if (value === undefined || value === null) {
    return isOutermost ? NO_VALUE : '<nil>';
  }
  if (typeof value === 'string') {
    return value;
  }
  if (value instanceof RegoNumber) {
    return value.text;
  }
  if (isGoFloat(value)) {
    return formatFloat(value.float, 'g');
  }
  if (value instanceof RegoObject) {
    return `map[${sortedEntries(value)
      .map(([key, item]) => `${key}:${print(item, false)}`)
      .join(' ')}]`;
  }
  if (typeof value === 'boolean' || typeof value === 'bigint') {
    return String(value);
  }
  return isList(value) ? `[${value.map((item) => print(item, false)).join(' ')}]` : fail('sets cannot be rendered');
}

function formatArgument(value: TemplateValue): FormatArgument {
  if (typeof value === 'bigint') {
    return { type: 'int64', value };
  }
  return isGoFloat(value) ? { type: 'float64', value: value.float } : { type: 'string', value: print(value, false) };
}

/** Go's Sprint: a space between operands of which neither is a string. */
function sprint(values: readonly TemplateValue[]): string {
  const isText = (value: TemplateValue): boolean => typeof value === 'string';
  return values
    .map((value, index) => (index > 0 && !isText(value) && !isText(values[index - 1]) ? ' ' : '') + print(value, false))
    .join('');
}

type TemplateFunction = (values: readonly TemplateValue[]) => TemplateValue;

/** -1, 0 or 1 for two values of one basic kind. */
function compareBasic(a: TemplateValue, b: TemplateValue): number {
  const x = basic(a);
  const y = basic(b);
  if (typeof x === 'string' && typeof y === 'string') {
    return Math.sign(compareStrings(x, y));
  }
  if (isGoFloat(x) && isGoFloat(y)) {
    return Math.sign(x.float - y.float);
  }
  return typeof x === 'bigint' && typeof y === 'bigint'
    ? x === y
      ? 0
      : x < y
        ? -1
        : 1
    : fail('incompatible types for comparison');
}

function basic(value: TemplateValue): TemplateValue {
  return value instanceof RegoNumber ? value.text : value;
}

function isEqual(a: TemplateValue, b: TemplateValue): boolean {
  if (typeof a === 'boolean' && typeof b === 'boolean') {
    return a === b;
  }
  const isNothing = (value: TemplateValue): boolean => value === undefined || value === null;
  return isNothing(a) || isNothing(b) ? isNothing(a) === isNothing(b) : compareBasic(a, b) === 0;
}

function comparison(holds: (order: number) => boolean): TemplateFunction {
  return ([a, b]) => holds(compareBasic(a, b));
}

function lengthOf(value: TemplateValue): bigint {
  const plain = basic(value);
  if (typeof plain === 'string') {
    return BigInt(Buffer.byteLength(plain));
  }
  if (plain instanceof RegoObject) {
    return BigInt(plain.size);
  }
  return isList(plain) ? BigInt(plain.length) : fail('len of a scalar');
}

function indexInto([value, ...keys]: readonly TemplateValue[]): TemplateValue {
  let at = value;
  for (const key of keys) {
    if (at instanceof RegoObject && typeof key === 'string') {
      at = at.get(key);
    } else {
      const index = typeof key === 'bigint' ? Number(key) : fail('index must be an integer');
      at = isList(at) && index >= 0 && index < at.length ? at[index] : fail('index out of range');
    }
  }
  return at;
}

/** Go slices strings by bytes. */
function sliceOf([value, ...bounds]: readonly TemplateValue[]): TemplateValue {
  const items = typeof value === 'string' ? Buffer.from(value) : isList(value) ? value : fail('cannot slice');
  const [from = 0, to = items.length] = bounds.map((bound) =>
    typeof bound === 'bigint' ? Number(bound) : fail('index must be an integer'),
  );
  if (from < 0 || to < from || to > items.length || bounds.length > 2) {
    fail('slice out of range');
  }
  return Buffer.isBuffer(items) ? items.subarray(from, to).toString() : items.slice(from, to);
}

const HTML: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&#34;'],
  ["'", '&#39;'],
  ['\0', '\ufffd'],
]);

function escapeHtml(text: string): string {
  return text.replace(/[&<>"'\0]/g, (character) => HTML.get(character) ?? character);
}

function escapeJs(text: string): string {
  // oxlint-disable-next-line no-control-regex -- Go escapes these
  return text.replace(/[\\'"<>&=\u0000-\u001f]/g, (character) => {
    return /[\\'"]/.test(character)
      ? `\\${character}`
      : `\\u${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}`;
  });
}

const FUNCTIONS: ReadonlyMap<string, TemplateFunction> = new Map<string, TemplateFunction>([
  ['not', ([value]) => !isTrue(value)],
  [
    'eq',
    ([first, ...others]) =>
      others.length === 0 ? fail('eq needs two operands') : others.some((other) => isEqual(first, other)),
  ],
  ['ne', ([a, b]) => !isEqual(a, b)],
  ['lt', comparison((order) => order < 0)],
  ['le', comparison((order) => order <= 0)],
  ['gt', comparison((order) => order > 0)],
  ['ge', comparison((order) => order >= 0)],
  ['len', ([value]) => lengthOf(value)],
  ['index', indexInto],
  ['slice', sliceOf],
  ['print', sprint],
  ['println', (values) => `${values.map((value) => print(value, false)).join(' ')}\n`],
  ['html', (values) => escapeHtml(sprint(values))],
  ['js', (values) => escapeJs(sprint(values))],
  ['urlquery', (values) => queryEscape(sprint(values))],
]);

function fail(message: string): never {
  return undefinedBecause(`strings.render_template: ${message}`);
}

export const templateBuiltins: readonly (readonly [string, OpaBuiltin])[] = [
  ['strings.render_template', renderTemplate],
];
