import type { Expression } from '../model/ast.ts';
import type { Overload } from '../model/library.ts';
import type { CelType } from '../model/type.ts';
import type { CelValue } from '../model/value.ts';
import type { StructFactory } from './struct.ts';

/** The meaning of an identifier that is not a variable. */
type Meaning =
  | { readonly kind: 'type'; readonly denotes: CelType }
  | { readonly kind: 'constant'; readonly value: CelValue };

/** An expression with the results of the checker. */
export interface CompileInput {
  readonly expression: Expression;
  /** Overloads found by the checker, by id of the call. */
  readonly overloads: ReadonlyMap<number, readonly Overload[]>;
  /** Meanings of identifiers that are not variables, by id. */
  readonly meanings: ReadonlyMap<number, Meaning>;
  /** All functions by name. */
  readonly functions: ReadonlyMap<string, readonly Overload[]>;
  readonly structs?: StructFactory | undefined;
  /** Whether `orValue` of a value that is not an optional fails. Default: it returns the value. */
  readonly optionalReceivers?: boolean;
}
