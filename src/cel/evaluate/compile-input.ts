import type { Expression } from '../ast.ts';
import type { Overload } from '../library.ts';
import type { CelType } from '../type.ts';
import type { CelValue } from '../value.ts';
import type { StructFactory } from './struct.ts';

/** What an identifier stands for when it is no variable. */
export type Meaning =
  | { readonly kind: 'type'; readonly denotes: CelType }
  | { readonly kind: 'constant'; readonly value: CelValue };

/** An expression with what is known about it. An expression that was only parsed has neither overloads nor meanings. */
export interface CompileInput {
  readonly expression: Expression;
  /** The overloads that the checker found for a call, by the call's id; undefined when it did not check. */
  readonly overloads: ReadonlyMap<number, readonly Overload[]> | undefined;
  /** What identifiers stand for that are no variables, by their id, as the checker found. */
  readonly meanings: ReadonlyMap<number, Meaning> | undefined;
  /** All functions, by name. */
  readonly functions: ReadonlyMap<string, readonly Overload[]>;
  /** Names of variables, qualified ones included: only needed to resolve names of an expression not checked. */
  readonly variables?: ReadonlySet<string>;
  /** Types that an expression not checked may name. */
  readonly types?: ReadonlyMap<string, CelType>;
  /** The namespace in which names of an expression not checked are looked up first. */
  readonly container?: string;
  readonly structs?: StructFactory | undefined;
  /**
   * Whether to follow the specification where API servers do not: a literal that can never be evaluated fails where it
   * is reached, not when the program is made; a map literal with the same key twice fails; so does asking for a field
   * of what has none.
   */
  readonly isSpecification?: boolean;
}
