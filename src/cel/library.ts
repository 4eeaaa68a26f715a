import type { CelType } from './type.ts';
import type { CelResult, CelValue } from './value.ts';

/** A set of functions, constants and types that expressions may use, and since when. */
export interface Library {
  readonly name: string;
  /** First Kubernetes minor version (of 1.x) whose API server has it; undefined: the language itself. */
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
  /** What a call costs at run time, as an API server counts it. Default: {@link CALL_COST}. Given arguments and result. */
  readonly cost?: (args: readonly CelValue[], result: CelResult) => number;
  /** What the checker's estimate says of a call. Default: {@link CALL_COST}. */
  readonly estimate?: (sizes: CallSizes) => CallEstimate;
}

/** Cost of a call unless its overload says otherwise. */
export const CALL_COST = 1;

/** Bounds of a size or a cost; sizes are in code points, bytes, elements or entries. */
export interface Range {
  readonly min: number;
  readonly max: number;
}

/** What is known of a call's arguments before it happens, receiver first. */
export interface CallSizes {
  readonly args: readonly Range[];
  /** Bounds of the elements' sizes of arguments that are lists or maps; undefined where nothing is known. */
  readonly elements: readonly (Range | undefined)[];
}

export interface CallEstimate {
  readonly cost: Range;
  /** Bounds of the result's size, when it has one. */
  readonly size?: Range;
}
