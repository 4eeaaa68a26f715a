import type { CelValue } from './value.ts';

/**
 * The syntax tree of CEL after macro expansion. Operators are calls of functions with the names that the specification
 * gives them (`_+_`, `_&&_`, `_[_]`, `_?_:_`, `!_`, `-_`, `@in`, `_?._`, `_[?_]`), macros are comprehensions, as in the
 * specification's own syntax tree; so costs can be counted as API servers count them.
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

/** Where in the source, as offsets of UTF-16 units; `id` is unique within one tree, counted from 1. */
interface Node {
  readonly id: number;
  readonly start: number;
  readonly end: number;
  /** Where errors about the node point, as API servers do: the operator, the dot, the opening bracket. */
  readonly position: number;
}

export interface LiteralExpression extends Node {
  readonly kind: 'literal';
  readonly value: CelValue;
}

export interface IdentifierExpression extends Node {
  readonly kind: 'identifier';
  /** With its dots when it is a qualified name that the checker resolved; a leading dot means the root. */
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
  /** Where the function's name or the operator stands. */
  readonly nameStart: number;
  readonly nameEnd: number;
  /** The macro as written, when one expanded to this call (`optMap`, `math.greatest`). */
  readonly macro: MacroCall | undefined;
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

/** A fold over a list or the keys of a map: what macros expand to. */
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
  /** The macro as written: for printing, for errors, and for the compiler's shortcuts. */
  readonly macro: MacroCall;
}

export interface MacroCall {
  readonly name: string;
  readonly target: Expression | undefined;
  readonly args: readonly Expression[];
}
