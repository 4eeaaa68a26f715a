/**
 * CEL values. Parsed JSON needs no conversion:
 * - null, booleans, strings and lists are JavaScript values; string positions count code points, not UTF-16 units;
 * - **int**: a `number` that is a safe integer (never -0), or a `bigint` outside of the safe range;
 * - **double**: a `number` that is not an integer (including NaN and infinities), or a {@link CelDouble} for an
 *   integral value; -0 is a CelDouble;
 * - **uint**: a {@link CelUint};
 * - **bytes**: a Uint8Array;
 * - **map**: a plain object, of which only own properties count, or a {@link CelMap} if not all keys are strings;
 * - all other values are instances of {@link CelObject}: timestamps, durations, types, optionals, structs, and types of
 *   libraries.
 */
export type CelValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | Uint8Array
  | readonly CelValue[]
  | CelRecord
  | CelMap
  | CelDouble
  | CelUint
  | CelObject;

/** A map with string keys: an object as JSON.parse creates it. */
export interface CelRecord {
  readonly [key: string]: CelValue;
}

/** Base of values that are neither lists, bytes nor maps with string keys, so that one `instanceof` recognizes them. */
export abstract class CelBoxed {
  /** Keeps TypeScript from accepting other objects of the same shape. */
  declare protected readonly isBoxed: true;
}

/** A double with an integral value, to distinguish it from an int. */
export class CelDouble extends CelBoxed {
  readonly value: number;

  constructor(value: number) {
    super();
    this.value = value;
  }
}

/** An unsigned integer between 0 and 2^64-1. */
export class CelUint extends CelBoxed {
  readonly value: bigint;

  constructor(value: bigint) {
    super();
    this.value = value;
  }
}

/** Counts visited values, to bound the comparison of large values. */
export interface WorkMeter {
  /** May throw to abort the evaluation. */
  work(units: number): void;
}

/** Values of types that JSON does not have. They define their own type name and equality. */
export abstract class CelObject extends CelBoxed {
  /** The name that `type(value)` returns. */
  abstract readonly typeName: string;
  /** Compares with another value; `meter` counts the work if other values are compared. */
  abstract equals(other: CelValue, meter?: WorkMeter): boolean;
  /** The result of `==` with this value on the left: some types return a failure for values of other types. */
  compareEqual(other: CelValue, meter?: WorkMeter): boolean | EvaluationFailure {
    return this.equals(other, meter);
  }
  /** The size that run-time costs are based on. */
  get costSize(): number {
    return 1;
  }
}

/**
 * A failed computation as a value: `||`, `&&` and optional chains absorb it. The public API converts it to a thrown
 * CelError. `expressionId` is the failed node; the evaluator sets it.
 */
export class EvaluationFailure extends CelBoxed {
  readonly message: string;
  expressionId: number | undefined;

  constructor(message: string, expressionId?: number) {
    super();
    this.message = message;
    this.expressionId = expressionId;
  }
}

/** The message for a call with values that the function does not take. */
export const NO_SUCH_OVERLOAD = 'no such overload';

/** The result of a computation. */
export type CelResult = CelValue | EvaluationFailure;

/** Identity of a map key: equal numbers of all types are the same key. */
export type MapKey = string | boolean | number | bigint;

/** A map with keys of any type, in insertion order. */
export class CelMap extends CelBoxed {
  /** Key and value by the identity of the key. */
  readonly entries: ReadonlyMap<MapKey, readonly [key: CelValue, value: CelValue]>;

  constructor(entries: ReadonlyMap<MapKey, readonly [key: CelValue, value: CelValue]>) {
    super();
    this.entries = entries;
  }
}
