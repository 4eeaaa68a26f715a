import type { CelType } from '../model/type.ts';
import type { FunctionDeclaration, Overload, PreparedCall } from '../model/library.ts';
import { EvaluationFailure } from '../model/value.ts';
import type { CelResult } from '../model/value.ts';

/** An int as overloads receive it. */
export type Int = number | bigint;

/** Optional properties of an overload. */
type Extras = Partial<Pick<Overload, 'cost' | 'costById' | 'estimate' | 'isUnguarded' | 'prepare' | 'work'>>;

/** A call with typed parameters: the evaluator passes only values of the declared types. */
type TypedCall = (...args: never[]) => CelResult;

/** An overload called as `receiver.name(…)`; the receiver is the first parameter. */
export function member(
  id: string,
  parameters: readonly CelType[],
  result: CelType,
  call: TypedCall,
  extras: Extras = {},
): Overload {
  return { id, isMember: true, parameters, result, call: call as PreparedCall, ...extras };
}

/** An overload called as `name(…)`. */
export function global(
  id: string,
  parameters: readonly CelType[],
  result: CelType,
  call: TypedCall,
  extras: Extras = {},
): Overload {
  return { ...member(id, parameters, result, call, extras), isMember: false };
}

/** A function with its documentation; `example` is an expression and its result, both as CEL expressions. */
export function describe(
  name: string,
  summary: string,
  example: readonly [expression: string, result: string],
  overloads: readonly Overload[],
): FunctionDeclaration {
  return { name, overloads, summary, example: { expression: example[0], result: example[1] } };
}

export function fail(message: string): EvaluationFailure {
  return new EvaluationFailure(message);
}
