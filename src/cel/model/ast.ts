import type { CelValue } from './value.ts';

/**
 * The syntax tree of CEL after macro expansion. Operators are calls of functions with the specification's names (`_+_`,
 * `_&&_`, `_[_]`, `_?_:_`, `!_`, `-_`, `@in`, `_?._`, `_[?_]`), and macros are comprehensions, as in cel-spec's
 * `syntax.proto`, so costs can be counted as in API servers.
 */
export type Expression =
  | LiteralExpression
  | IdentifierExpression
  | SelectExpression
  | CallExpression
  | ListExpression
  | MapExpression
  | StructExpression
  | ComprehensionExpression;

/** Source range as UTF-16 offsets; `id` is unique in a tree and starts at 1. */
interface Node {
  readonly id: number;
  readonly start: number;
  readonly end: number;
  /** Position that errors show, as in API servers: the operator, the dot, the opening bracket. */
  readonly position: number;
}

export interface LiteralExpression extends Node {
  readonly kind: 'literal';
  readonly value: CelValue;
}

export interface IdentifierExpression extends Node {
  readonly kind: 'identifier';
  /** With dots if the checker resolved a qualified name; a leading dot means the root namespace. */
  readonly name: string;
}

export interface SelectExpression extends Node {
  readonly kind: 'select';
  readonly operand: Expression;
  readonly field: string;
  /** `has(operand.field)`. */
  readonly isTest: boolean;
}

export interface CallExpression extends Node {
  readonly kind: 'call';
  readonly function: string;
  readonly target: Expression | undefined;
  readonly args: readonly Expression[];
  /** Range of the function name or operator. */
  readonly nameStart: number;
  readonly nameEnd: number;
}

export interface ListExpression extends Node {
  readonly kind: 'list';
  readonly elements: readonly Expression[];
  /** Indexes of elements written `?element`. */
  readonly optionalIndexes: ReadonlySet<number>;
}

export interface MapExpression extends Node {
  readonly kind: 'map';
  readonly entries: readonly MapEntry[];
}

export interface MapEntry extends Node {
  readonly key: Expression;
  readonly value: Expression;
  readonly isOptional: boolean;
}

/** `Type{field: value}`. */
export interface StructExpression extends Node {
  readonly kind: 'struct';
  readonly typeName: string;
  readonly fields: readonly StructField[];
}

export interface StructField extends Node {
  readonly name: string;
  readonly value: Expression;
  readonly isOptional: boolean;
}

/** A fold over a list or the keys of a map; macros expand to it. */
export interface ComprehensionExpression extends Node {
  readonly kind: 'comprehension';
  readonly range: Expression;
  readonly variable: string;
  /** The second variable of two-variable macros (index and element, or key and value). */
  readonly secondVariable: string | undefined;
  readonly accumulator: string;
  readonly initial: Expression;
  readonly condition: Expression;
  readonly step: Expression;
  readonly result: Expression;
}
