import type { Expression } from '../model/ast.ts';
import type { Overload } from '../model/library.ts';
import type { CelType } from '../model/type.ts';
import type { CelValue } from '../model/value.ts';
import type { StructFactory } from './struct.ts';

/** The meaning of an identifier that is not a variable. */
type Meaning =
  | { readonly kind: 'type'; readonly denotes: CelType }
  | { readonly kind: 'constant'; readonly value: CelValue };

/**
 * An expression with the results of the checker. An expression that was only parsed has neither overloads nor meanings.
 */
export interface CompileInput {
  readonly expression: Expression;
  /** Overloads found by the checker, by id of the call; undefined if the expression is not checked. */
  readonly overloads: ReadonlyMap<number, readonly Overload[]> | undefined;
  /** Meanings of identifiers that are not variables, by id. */
  readonly meanings: ReadonlyMap<number, Meaning> | undefined;
  /** All functions by name. */
  readonly functions: ReadonlyMap<string, readonly Overload[]>;
  /** Names of variables, including qualified ones. Needed only for expressions that are not checked. */
  readonly variables?: ReadonlySet<string>;
  /** Types that an expression without a check can name. */
  readonly types?: ReadonlyMap<string, CelType>;
  /** The namespace in which an expression without a check looks names up first. */
  readonly container?: string;
  readonly structs?: StructFactory | undefined;
  /** Whether `orValue` of a value that is not an optional fails. Default: it returns the value. */
  readonly optionalReceivers?: boolean;
  /**
   * Whether to follow the specification where API servers differ: an invalid literal fails during evaluation instead of
   * compilation; a map literal with a repeated key fails; a presence test on a value without fields fails.
   */
  readonly isSpecification?: boolean;
}
