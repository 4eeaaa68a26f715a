import type { CelType } from './type.ts';
import type { CelResult, CelValue, EvaluationFailure } from './value.ts';

/** Functions and types that expressions can use, with the Kubernetes versions that have them. */
export interface Library {
  readonly name: string;
  /**
   * First Kubernetes minor version (of 1.x) with this library; undefined: part of the language, or not in any API
   * server.
   */
  readonly since: number | undefined;
  /** First Kubernetes minor version without this library. */
  readonly until?: number;
  readonly functions: readonly FunctionDeclaration[];
  /** Types with a name in expressions, such as `net.IP`. */
  readonly types?: readonly CelType[];
}

/** Since this minor version, API servers check new expressions in the language of the version before. */
const CHECKED_AT_PREVIOUS_SINCE = 28;

/**
 * The minor version whose language an API server allows in new expressions: the one before its own, so that a rollback
 * finds no expression that it does not know. Expressions that are stored already may use all of the server's own.
 */
export function newExpressionsVersion(server: number): number {
  return server >= CHECKED_AT_PREVIOUS_SINCE ? Math.max(server - 1, CHECKED_AT_PREVIOUS_SINCE - 1) : server;
}

/** The first minor version that allows a feature in new expressions, given the version that added it. */
export function allowedSince(added: number): number {
  return added >= CHECKED_AT_PREVIOUS_SINCE ? added + 1 : added;
}

export interface FunctionDeclaration {
  readonly name: string;
  readonly overloads: readonly Overload[];
  /** One line for documentation and completion. */
  readonly summary?: string;
  /** A short call and its result, both as CEL expressions. */
  readonly example?: FunctionExample;
}

export interface FunctionExample {
  readonly expression: string;
  readonly result: string;
}

/** One signature of a function. */
export interface Overload {
  /** The id in the specification or the Kubernetes library, such as `string_to_ip`: costs are declared by id. */
  readonly id: string;
  /** Whether it is called as `receiver.name(…)`; the receiver is then the first parameter. */
  readonly isMember: boolean;
  readonly parameters: readonly CelType[];
  readonly result: CelType;
  /** Called with as many values as there are parameters, of these types (any type for `dyn`). Never throws. */
  readonly call: (...args: CelValue[]) => CelResult;
  /**
   * Called once at compile time with the literal arguments (undefined for the others). Returns a call that reuses work
   * on them (such as a compiled pattern), a failure if the literals are invalid (the program then does not compile), or
   * undefined.
   */
  readonly prepare?: (literals: readonly (CelValue | undefined)[]) => PreparedCall | EvaluationFailure | undefined;
  /** Run-time cost of a call, given arguments and result, as API servers count it. Default: {@link CALL_COST}. */
  readonly cost?: (args: readonly CelValue[], result: CelResult) => number;
  /**
   * Whether `cost` applies only if the checker found exactly this overload, and {@link CALL_COST} otherwise. API
   * servers count costs that are declared by overload id in this way; costs declared by function name always apply.
   */
  readonly costById?: true;
  /**
   * Work of a call beyond the length of its first argument, in units of about 10 ns; called after the call. Costs are
   * those of API servers and can be far below the work.
   */
  readonly work?: (args: readonly CelValue[], result: CelResult) => number;
  /** Whether the call accepts values of any type if the checker did not know the types, and checks them itself. */
  readonly isUnguarded?: true;
  /** Estimated cost of a call. Default: {@link CALL_COST}. */
  readonly estimate?: (sizes: CallSizes) => CallEstimate;
}

export type PreparedCall = (...args: CelValue[]) => CelResult;

/** Default cost of a call. */
export const CALL_COST = 1;

/** Bounds of a size or cost; sizes are code points, bytes, elements or entries. */
export interface Range {
  readonly min: number;
  /** Infinity if unbounded. */
  readonly max: number;
}

/** Known properties of the arguments at compile time, receiver first. */
export interface CallSizes {
  readonly args: readonly Range[];
  /** Bounds of the element sizes of list and map arguments; undefined if unknown. */
  readonly elements: readonly (Range | undefined)[];
  /** Types from the checker; `dyn` if unknown. */
  readonly types: readonly CelType[];
  /** Values of literal arguments. */
  readonly literals: readonly (CelValue | undefined)[];
}

export interface CallEstimate {
  readonly cost: Range;
  /** Bounds of the result's size, if it has one. */
  readonly size?: Range;
}
