/**
 * Values of CEL, so that parsed JSON is one without conversion:
 * - null, booleans, strings and lists are JavaScript's own; strings count code points, not UTF-16 units;
 * - **int**: a `number` that is a safe integer (never -0), or a `bigint` beyond; never a bigint within the safe range;
 * - **double**: a `number` that is not an integer (NaN and infinities included), or a {@link CelDouble} for integral
 *   ones; -0 is a CelDouble;
 * - **uint**: a {@link CelUint};
 * - **bytes**: a Uint8Array;
 * - **map**: a plain object, of which only own properties count, or a {@link CelMap} when its keys are not all strings;
 * - everything else is an instance of {@link CelObject}: timestamps, durations, types, optionals, structs, and the types
 *   of libraries.
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

/** A map whose keys are strings: an object as JSON.parse makes it. */
export interface CelRecord {
  readonly [key: string]: CelValue;
}

/** What is an object of JavaScript but neither a list, bytes nor a map with string keys: one `instanceof` tells. */
export abstract class CelBoxed {
  /** Keeps other objects from being taken for one by their shape. */
  declare protected readonly isBoxed: true;
}

/** A double with an integral value, which a plain number could not be told from an int. */
export class CelDouble extends CelBoxed {
  readonly value: number;

  constructor(value: number) {
    super();
    this.value = value;
  }
}

/** An unsigned integer: `value` is between 0 and 2^64-1. */
export class CelUint extends CelBoxed {
  readonly value: bigint;

  constructor(value: bigint) {
    super();
    this.value = value;
  }
}

/** Counts what is looked at, so that comparing large values has a bound. */
export interface WorkMeter {
  /** May throw to end the evaluation. */
  work(units: number): void;
}

/** Values of types that JSON does not have. Compared by {@link CelObject.equals} and named by their type. */
export abstract class CelObject extends CelBoxed {
  /** The name that `type(value)` shows. */
  abstract readonly typeName: string;
  /** `meter`: told by those that compare other values. */
  abstract equals(other: CelValue, meter?: WorkMeter): boolean;
  /** What the operator `==` with this on its left gives: some types refuse values of other types instead. */
  compareEqual(other: CelValue, meter?: WorkMeter): boolean | EvaluationFailure {
    return this.equals(other, meter);
  }
  /** Its size as run-time costs count it. */
  get costSize(): number {
    return 1;
  }
}

/**
 * A failed computation, as a value: `||`, `&&` and optional chains absorb it. Becomes a thrown CelError at the surface only.
 * `expressionId` is the node that failed, set where the failure passes the evaluator.
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

/** What a computation gives. */
export type CelResult = CelValue | EvaluationFailure;

/** What tells the keys of a map apart: numbers of all kinds that are equal are one key. */
export type MapKey = string | boolean | number | bigint;

/** A map with keys that are not all strings, in the order of insertion. */
export class CelMap extends CelBoxed {
  /** Key and value by what identifies the key. */
  readonly entries: ReadonlyMap<MapKey, readonly [key: CelValue, value: CelValue]>;

  constructor(entries: ReadonlyMap<MapKey, readonly [key: CelValue, value: CelValue]>) {
    super();
    this.entries = entries;
  }
}
