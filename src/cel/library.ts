import type { CelType } from './type.ts';
import type { CelResult, CelValue, EvaluationFailure } from './value.ts';

/** A set of functions, constants and types that expressions may use, and since when. */
export interface Library {
  readonly name: string;
  /** First Kubernetes minor version (of 1.x) whose API server has it; undefined: the language itself, or no API server has it. */
  readonly since: number | undefined;
  /** First Kubernetes minor version whose API server no longer has it. */
  readonly until?: number;
  readonly functions: readonly FunctionDeclaration[];
  /** Types that can be named in expressions, such as `net.IP`. */
  readonly types?: readonly CelType[];
}

export interface FunctionDeclaration {
  readonly name: string;
  readonly overloads: readonly Overload[];
  /** One line for documentation and completion. */
  readonly summary?: string;
  /** A small call, and what it gives, both as CEL. */
  readonly example?: FunctionExample;
}

export interface FunctionExample {
  readonly expression: string;
  readonly result: string;
}

/** One signature of a function. */
export interface Overload {
  /** The specification's or the Kubernetes library's own id, such as `string_to_ip`: costs are declared by it. */
  readonly id: string;
  /** Whether it is called as `receiver.name(…)`; the receiver is then the first parameter. */
  readonly isMember: boolean;
  readonly parameters: readonly CelType[];
  readonly result: CelType;
  /** Gets as many values as there are parameters, of these types (a `dyn` parameter: of any). Never throws. */
  readonly call: (...args: CelValue[]) => CelResult;
  /**
   * Asked once, when a program is made, with the arguments that are literals (undefined: the others). Gives a call that
   * did the work on them already (a compiled pattern), a failure when they can never be right (a program is then not
   * made), or undefined when nothing is gained.
   */
  readonly prepare?: (literals: readonly (CelValue | undefined)[]) => PreparedCall | EvaluationFailure | undefined;
  /** What a call costs at run time, as an API server counts it. Default: {@link CALL_COST}. Given arguments and result. */
  readonly cost?: (args: readonly CelValue[], result: CelResult) => number;
  /**
   * Whether `cost` counts only where the checker found this overload and no other, {@link CALL_COST} otherwise: so API
   * servers count what they know by an overload's id. What they know by a function's name always counts.
   */
  readonly costById?: true;
  /**
   * Work that a call did beyond what the length of its first argument tells, in units of some 10 ns; asked after it. Costs
   * are an API server's and say nothing of it.
   */
  readonly work?: (args: readonly CelValue[], result: CelResult) => number;
  /** Whether the call gets values of any types where the checker did not know them, and tells itself what it takes. */
  readonly isUnguarded?: true;
  /** What the checker's estimate says of a call. Default: {@link CALL_COST}. */
  readonly estimate?: (sizes: CallSizes) => CallEstimate;
}

export type PreparedCall = (...args: CelValue[]) => CelResult;

/** Cost of a call unless its overload says otherwise. */
export const CALL_COST = 1;

/** Bounds of a size or a cost; sizes are in code points, bytes, elements or entries. */
export interface Range {
  readonly min: number;
  /** Infinity where nothing bounds it. */
  readonly max: number;
}

/** What is known of a call's arguments before it happens, receiver first. */
export interface CallSizes {
  readonly args: readonly Range[];
  /** Bounds of the elements' sizes of arguments that are lists or maps; undefined where nothing is known. */
  readonly elements: readonly (Range | undefined)[];
  /** Types as the checker found them; `dyn` where nothing is known. */
  readonly types: readonly CelType[];
  /** Values of arguments that are literals. */
  readonly literals: readonly (CelValue | undefined)[];
}

export interface CallEstimate {
  readonly cost: Range;
  /** Bounds of the result's size, when it has one. */
  readonly size?: Range;
}
