import type { Expression } from '../../../src/cel/model/ast.ts';
import { CelDouble, CelUint } from '../../../src/cel/model/value.ts';
import type { CelValue } from '../../../src/cel/model/value.ts';

/** Says what to write behind a node. */
export type Adorn = (node: Expression | undefined, kind: string) => string;

/** A tree in the notation of cel-go's parser tests (its `debug` package), as the conformance data has it. */
export function debugText(root: Expression, adorn: Adorn): string {
  return new DebugWriter(adorn).write(root, '');
}

class DebugWriter {
  readonly #adorn: Adorn;

  constructor(adorn: Adorn) {
    this.#adorn = adorn;
  }

  write(node: Expression, indent: string): string {
    return this.#body(node, indent) + this.#adorn(node, kindOf(node));
  }

  #body(node: Expression, indent: string): string {
    switch (node.kind) {
      case 'literal':
        return literal(node.value);
      case 'identifier':
        return node.name;
      case 'select':
        return `${this.write(node.operand, indent)}.${node.field}${node.isTest ? '~test-only~' : ''}`;
      case 'call': {
        const target = node.target === undefined ? '' : `${this.write(node.target, indent)}.`;
        return `${target}${node.function}(${this.#block(
          node.args.map((arg) => (inner) => this.write(arg, inner)),
          indent,
        )})`;
      }
      case 'list':
        return `[${this.#block(
          node.elements.map(
            (element, index) => (inner) => optional(node.optionalIndexes.has(index)) + this.write(element, inner),
          ),
          indent,
        )}]`;
      case 'map':
        return `{${this.#block(
          node.entries.map(
            (entry) => (inner) =>
              `${optional(entry.isOptional)}${this.write(entry.key, inner)}:${this.write(entry.value, inner)}${this.#adorn(undefined, '*expr.Expr_CreateStruct_Entry')}`,
          ),
          indent,
        )}}`;
      case 'struct':
        return `${node.typeName}{${this.#block(
          node.fields.map(
            (field) => (inner) =>
              `${optional(field.isOptional)}${field.name}:${this.write(field.value, inner)}${this.#adorn(undefined, '*expr.Expr_CreateStruct_Entry')}`,
          ),
          indent,
        )}}`;
      default:
        return this.#comprehension(node, `${indent}  `);
    }
  }

  #comprehension(node: Extract<Expression, { kind: 'comprehension' }>, inner: string): string {
    const lines = [
      '// Variable',
      `${node.variable},`,
      '// Target',
      `${this.write(node.range, inner)},`,
      '// Accumulator',
      `${node.accumulator},`,
      '// Init',
      `${this.write(node.initial, inner)},`,
      '// LoopCondition',
      `${this.write(node.condition, inner)},`,
      '// LoopStep',
      `${this.write(node.step, inner)},`,
      '// Result',
      `${this.write(node.result, inner)})`,
    ];
    return `__comprehension__(\n${lines.map((line) => inner + line).join('\n')}`;
  }

  #block(items: readonly ((indent: string) => string)[], indent: string): string {
    if (items.length === 0) {
      return '';
    }
    const inner = `${indent}  `;
    return `\n${items.map((item) => inner + item(inner)).join(',\n')}\n${indent}`;
  }
}

function optional(isOptional: boolean): string {
  return isOptional ? '?' : '';
}

function kindOf(node: Expression): string {
  switch (node.kind) {
    case 'literal':
      return `*expr.Constant_${literalKind(node.value)}Value`;
    case 'identifier':
      return '*expr.Expr_IdentExpr';
    case 'select':
      return '*expr.Expr_SelectExpr';
    case 'call':
      return '*expr.Expr_CallExpr';
    case 'list':
      return '*expr.Expr_ListExpr';
    case 'map':
    case 'struct':
      return '*expr.Expr_StructExpr';
    default:
      return '*expr.Expr_ComprehensionExpr';
  }
}

function literalKind(value: CelValue): string {
  if (value === null) {
    return 'Null';
  }
  switch (typeof value) {
    case 'boolean':
      return 'Bool';
    case 'string':
      return 'String';
    case 'bigint':
      return 'Int64';
    case 'number':
      return Number.isInteger(value) ? 'Int64' : 'Double';
    default:
      return value instanceof Uint8Array ? 'Bytes' : value instanceof CelUint ? 'Uint64' : 'Double';
  }
}

function literal(value: CelValue): string {
  if (value instanceof CelUint) {
    return `${value.value}u`;
  }
  if (value instanceof CelDouble) {
    return String(value.value);
  }
  if (value instanceof Uint8Array) {
    return `b${quote(Buffer.from(value).toString('utf8'))}`;
  }
  if (typeof value === 'string') {
    return quote(value);
  }
  return typeof value === 'bigint' ? value.toString() : JSON.stringify(value);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\t': '\\t',
  '\n': '\\n',
  '\v': '\\v',
  '\f': '\\f',
  '\r': '\\r',
  '"': '\\"',
  '\\': '\\\\',
};

/** As Go quotes strings. */
function quote(text: string): string {
  return `"${Array.from(text, (character) => ESCAPES[character] ?? character).join('')}"`;
}
