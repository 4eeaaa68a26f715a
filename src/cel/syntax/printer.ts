import type { CallExpression, Expression, MacroCall } from '../ast.ts';
import { CelDouble, CelUint } from '../value.ts';
import type { CelValue } from '../value.ts';
import { Operator } from './operators.ts';

/** How tightly things bind: an operand that binds less tightly than its place needs brackets. */
const Binding = { Conditional: 1, Or: 2, And: 3, Relation: 4, Sum: 5, Product: 6, Unary: 7, Member: 8 } as const;

interface Infix {
  readonly text: string;
  readonly binding: number;
}

const INFIX: ReadonlyMap<string, Infix> = new Map([
  [Operator.Equals, { text: '==', binding: Binding.Relation }],
  [Operator.NotEquals, { text: '!=', binding: Binding.Relation }],
  [Operator.Less, { text: '<', binding: Binding.Relation }],
  [Operator.LessEquals, { text: '<=', binding: Binding.Relation }],
  [Operator.Greater, { text: '>', binding: Binding.Relation }],
  [Operator.GreaterEquals, { text: '>=', binding: Binding.Relation }],
  [Operator.In, { text: 'in', binding: Binding.Relation }],
  [Operator.Add, { text: '+', binding: Binding.Sum }],
  [Operator.Subtract, { text: '-', binding: Binding.Sum }],
  [Operator.Multiply, { text: '*', binding: Binding.Product }],
  [Operator.Divide, { text: '/', binding: Binding.Product }],
  [Operator.Modulo, { text: '%', binding: Binding.Product }],
]);

const LOGICAL: ReadonlyMap<string, Infix> = new Map([
  [Operator.LogicalAnd, { text: '&&', binding: Binding.And }],
  [Operator.LogicalOr, { text: '||', binding: Binding.Or }],
]);

/** The text of an expression, with macros as they were written. It parses to the same expression. */
export function print(expression: Expression): string {
  return printed(expression).text;
}

interface Printed {
  readonly text: string;
  readonly binding: number;
}

function printed(node: Expression): Printed {
  switch (node.kind) {
    case 'literal':
      return member(printValue(node.value));
    case 'identifier':
      return member(node.name);
    case 'select': {
      const selection = `${operand(node.operand, Binding.Member)}.${fieldName(node.field)}`;
      return member(node.isTest ? `has(${selection})` : selection);
    }
    case 'call':
      return node.macro === undefined ? printCall(node) : member(printMacro(node.macro));
    case 'list': {
      const elements = node.elements.map(
        (element, index) => optional(node.optionalIndexes.has(index)) + print(element),
      );
      return member(`[${elements.join(', ')}]`);
    }
    case 'map': {
      const entries = node.entries.map(
        (entry) => `${optional(entry.isOptional)}${print(entry.key)}: ${print(entry.value)}`,
      );
      return member(`{${entries.join(', ')}}`);
    }
    case 'struct': {
      const fields = node.fields.map(
        (field) => `${optional(field.isOptional)}${fieldName(field.name)}: ${print(field.value)}`,
      );
      return member(`${node.typeName}{${fields.join(', ')}}`);
    }
    default:
      return member(printMacro(node.macro));
  }
}

function member(text: string): Printed {
  return { text, binding: Binding.Member };
}

/** The text of an operand, in brackets when it binds less tightly than its place. */
function operand(node: Expression, binding: number): string {
  const { text, binding: own } = printed(node);
  return own < binding ? `(${text})` : text;
}

function optional(isOptional: boolean): string {
  return isOptional ? '?' : '';
}

function printMacro({ name, target, args }: MacroCall): string {
  return printFunction(name, target, args);
}

function printFunction(name: string, target: Expression | undefined, args: readonly Expression[]): string {
  const receiver = target === undefined ? '' : `${operand(target, Binding.Member)}.`;
  return `${receiver}${name}(${args.map(print).join(', ')})`;
}

function printCall(node: CallExpression): Printed {
  const [first, second, third] = node.args;
  if (node.target !== undefined || first === undefined) {
    return member(printFunction(node.function, node.target, node.args));
  }
  if (second === undefined) {
    return printUnary(node, first);
  }
  if (third !== undefined && node.function === Operator.Conditional) {
    const outcomes = `${operand(second, Binding.Or)} : ${operand(third, Binding.Conditional)}`;
    return { text: `${operand(first, Binding.Or)} ? ${outcomes}`, binding: Binding.Conditional };
  }
  return printBinary(node, first, second);
}

function printUnary(node: CallExpression, argument: Expression): Printed {
  if (node.function === Operator.LogicalNot) {
    return { text: `!${operand(argument, Binding.Member)}`, binding: Binding.Unary };
  }
  if (node.function === Operator.Negate) {
    // A minus before a number would become part of it.
    const text = argument.kind === 'literal' ? `(${print(argument)})` : operand(argument, Binding.Member);
    return { text: startsWithDigit(text) ? `-(${text})` : `-${text}`, binding: Binding.Unary };
  }
  return member(printFunction(node.function, undefined, node.args));
}

function startsWithDigit(text: string): boolean {
  return /^[-.]?\d/u.test(text);
}

function printBinary(node: CallExpression, left: Expression, right: Expression): Printed {
  const infix = INFIX.get(node.function);
  if (infix !== undefined) {
    const { text, binding } = infix;
    return { text: `${operand(left, binding)} ${text} ${operand(right, binding + 1)}`, binding };
  }
  const logical = LOGICAL.get(node.function);
  if (logical !== undefined) {
    const terms = balancedTerms(node) ?? [left, right];
    const texts = terms.map((term) => operand(term, logical.binding + 1));
    return { text: texts.join(` ${logical.text} `), binding: logical.binding };
  }
  switch (node.function) {
    case Operator.Index:
      return member(`${operand(left, Binding.Member)}[${print(right)}]`);
    case Operator.OptionalIndex:
      return member(`${operand(left, Binding.Member)}[?${print(right)}]`);
    case Operator.OptionalSelect: {
      const name = right.kind === 'literal' && typeof right.value === 'string' ? right.value : '';
      return member(`${operand(left, Binding.Member)}.?${fieldName(name)}`);
    }
    default:
      return member(printFunction(node.function, undefined, node.args));
  }
}

/** The terms of a chain of `&&` or `||`, if the parser would build this very tree of them; undefined otherwise. */
function balancedTerms(node: CallExpression): readonly Expression[] | undefined {
  const terms: Expression[] = [];
  const collect = (term: Expression | undefined): void => {
    if (term?.kind === 'call' && term.function === node.function && term.macro === undefined) {
      collect(term.args[0]);
      collect(term.args[1]);
    } else if (term !== undefined) {
      terms.push(term);
    }
  };
  collect(node);
  const isBalanced = (term: Expression | undefined, low: number, high: number): boolean => {
    if (term?.kind !== 'call' || term.function !== node.function) {
      return false;
    }
    const middle = (low + high + 1) >> 1;
    const [left, right] = term.args;
    return (
      (middle === low ? left === terms[low] : isBalanced(left, low, middle - 1)) &&
      (middle === high ? right === terms[high + 1] : isBalanced(right, middle + 1, high))
    );
  };
  return isBalanced(node, 0, terms.length - 2) ? terms : undefined;
}

const IDENTIFIER = /^[a-zA-Z_][a-zA-Z0-9_]*$/u;
const KEYWORDS: ReadonlySet<string> = new Set(['in', 'true', 'false', 'null']);

function fieldName(name: string): string {
  return IDENTIFIER.test(name) && !KEYWORDS.has(name) ? name : `\`${name}\``;
}

function printValue(value: CelValue): string {
  switch (typeof value) {
    case 'string':
      return printString(value);
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value);
    default:
      return printOtherValue(value);
  }
}

function printOtherValue(value: Exclude<CelValue, string | number | bigint | boolean>): string {
  if (value === null) {
    return 'null';
  }
  if (value instanceof CelUint) {
    return `${value.value}u`;
  }
  if (value instanceof CelDouble) {
    return printIntegralDouble(value.value);
  }
  if (value instanceof Uint8Array) {
    return `b"${Array.from(value, printByte).join('')}"`;
  }
  throw new TypeError('literals are null, booleans, numbers, strings and bytes');
}

function printIntegralDouble(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value);
  return text.includes('e') ? text : `${text}.0`;
}

const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ['\\', '\\\\'],
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

function printString(value: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what must be escaped
  const escaped = value.replaceAll(/["\\\u0000-\u001f\u007f]/gu, (character) => escapeCharacter(character));
  return `"${escaped}"`;
}

function printByte(byte: number): string {
  return byte >= 0x20 && byte < 0x7f
    ? (ESCAPES.get(String.fromCharCode(byte)) ?? String.fromCharCode(byte))
    : hex(byte);
}

function escapeCharacter(character: string): string {
  return ESCAPES.get(character) ?? hex(character.charCodeAt(0));
}

function hex(code: number): string {
  return `\\x${code.toString(16).padStart(2, '0')}`;
}
