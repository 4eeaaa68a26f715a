import type { Expression } from '../../../cel/index.ts';

/** What is wrong with a part of a mutation, for objects of one kind. */
export interface MutationProblem {
  /** The part of the expression that makes the mutation fail where it is evaluated. */
  readonly node: Expression;
  readonly message: string;
  /** Whether the mutation fails for every object of the kind. */
  readonly isFatal: boolean;
}
