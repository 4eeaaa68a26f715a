import type {
  CallExpression,
  ComprehensionExpression,
  Expression,
  IdentifierExpression,
  ListExpression,
  LiteralExpression,
  MapEntry,
  MapExpression,
  SelectExpression,
  StructExpression,
  StructField,
} from '../model/ast.ts';
import type { CelValue } from '../model/value.ts';
import { MAX_NODES } from './limits.ts';

/** Position of a node in the source. */
export interface NodePosition {
  readonly start: number;
  readonly end: number;
  readonly position: number;
}

/** The parts of a comprehension. */
export type ComprehensionParts = Omit<ComprehensionExpression, 'kind' | 'id' | keyof NodePosition>;

const NO_OPTIONALS: ReadonlySet<number> = new Set();

/** The expression has more than {@link MAX_NODES} nodes. */
export class TooManyNodes extends Error {}

/** Creates nodes and numbers them. */
export class NodeFactory {
  #count = 0;

  /** Number of ids in use: ids are 1 to `count`. */
  get count(): number {
    return this.#count;
  }

  nextId(): number {
    this.#count += 1;
    if (this.#count > MAX_NODES) {
      throw new TooManyNodes();
    }
    return this.#count;
  }

  literal({ start, end, position }: NodePosition, value: CelValue): LiteralExpression {
    return { kind: 'literal', id: this.nextId(), start, end, position, value };
  }

  identifier({ start, end, position }: NodePosition, name: string): IdentifierExpression {
    return { kind: 'identifier', id: this.nextId(), start, end, position, name };
  }

  select({ start, end, position }: NodePosition, operand: Expression, field: string, isTest = false): SelectExpression {
    return { kind: 'select', id: this.nextId(), start, end, position, operand, field, isTest };
  }

  /** A call whose function name is at the given position. */
  call(
    { start, end, position }: NodePosition,
    name: string,
    target: Expression | undefined,
    args: readonly Expression[],
  ): CallExpression {
    return this.namedCall({ start, end, position }, name, target, args, position, position);
  }

  namedCall(
    { start, end, position }: NodePosition,
    name: string,
    target: Expression | undefined,
    args: readonly Expression[],
    nameStart: number,
    nameEnd: number,
  ): CallExpression {
    const id = this.nextId();
    return { kind: 'call', id, start, end, position, function: name, target, args, nameStart, nameEnd };
  }

  list(
    { start, end, position }: NodePosition,
    elements: readonly Expression[],
    optionalIndexes = NO_OPTIONALS,
  ): ListExpression {
    return { kind: 'list', id: this.nextId(), start, end, position, elements, optionalIndexes };
  }

  map({ start, end, position }: NodePosition, entries: readonly MapEntry[]): MapExpression {
    return { kind: 'map', id: this.nextId(), start, end, position, entries };
  }

  mapEntry({ start, end, position }: NodePosition, key: Expression, value: Expression, isOptional: boolean): MapEntry {
    return { id: this.nextId(), start, end, position, key, value, isOptional };
  }

  struct({ start, end, position }: NodePosition, typeName: string, fields: readonly StructField[]): StructExpression {
    return { kind: 'struct', id: this.nextId(), start, end, position, typeName, fields };
  }

  structField(
    { start, end, position }: NodePosition,
    name: string,
    value: Expression,
    isOptional: boolean,
  ): StructField {
    return { id: this.nextId(), start, end, position, name, value, isOptional };
  }

  comprehension({ start, end, position }: NodePosition, parts: ComprehensionParts): ComprehensionExpression {
    return {
      kind: 'comprehension',
      id: this.nextId(),
      start,
      end,
      position,
      range: parts.range,
      variable: parts.variable,
      secondVariable: parts.secondVariable,
      accumulator: parts.accumulator,
      initial: parts.initial,
      condition: parts.condition,
      step: parts.step,
      result: parts.result,
    };
  }

  /** A deep copy with new ids. */
  copy(expression: Expression): Expression {
    switch (expression.kind) {
      case 'literal':
        return this.literal(expression, expression.value);
      case 'identifier':
        return this.identifier(expression, expression.name);
      case 'select':
        return this.select(expression, this.copy(expression.operand), expression.field, expression.isTest);
      case 'call': {
        const target = expression.target === undefined ? undefined : this.copy(expression.target);
        const args = expression.args.map((arg) => this.copy(arg));
        const { nameStart, nameEnd } = expression;
        return this.namedCall(expression, expression.function, target, args, nameStart, nameEnd);
      }
      case 'list':
        return this.list(
          expression,
          expression.elements.map((element) => this.copy(element)),
          expression.optionalIndexes,
        );
      case 'map':
        return this.map(
          expression,
          expression.entries.map((entry) =>
            this.mapEntry(entry, this.copy(entry.key), this.copy(entry.value), entry.isOptional),
          ),
        );
      case 'struct':
        return this.struct(
          expression,
          expression.typeName,
          expression.fields.map((field) =>
            this.structField(field, field.name, this.copy(field.value), field.isOptional),
          ),
        );
      default:
        return this.comprehension(expression, {
          range: this.copy(expression.range),
          variable: expression.variable,
          secondVariable: expression.secondVariable,
          accumulator: expression.accumulator,
          initial: this.copy(expression.initial),
          condition: this.copy(expression.condition),
          step: this.copy(expression.step),
          result: this.copy(expression.result),
        });
    }
  }
}
