/**
 * A value of a Go program, of the types that messages and templates need: decoded JSON, and numbers with a Go type.
 * Undefined is Go's invalid value, such as that of a missing key.
 */
export type GoValue =
  | undefined
  | null
  | boolean
  | string
  /** A number of decoded JSON: see {@link isIntegerNumber}. */
  | number
  /** An `int`. */
  | bigint
  | GoFloat
  | JsonNumber
  | readonly GoValue[]
  | GoObject;

/** A `map[string]any`; only own properties are its entries. */
export interface GoObject {
  readonly [key: string]: GoValue;
}

/** A float64, also where its value is an integer. */
export class GoFloat {
  readonly float: number;

  constructor(float: number) {
    this.float = float;
  }
}

/** Go's `json.Number`: a number that was decoded as text. To templates it is a string. */
export class JsonNumber {
  readonly text: string;

  /** @param text a number in JSON syntax */
  constructor(text: string) {
    this.text = text;
  }
}

/** 2⁶³: smaller integers are int64 in Kubernetes' decoded JSON (`unstructured.Unstructured`), all others float64. */
const INT64_BOUND = 2 ** 63;

/** Whether a number of decoded JSON is an int64 in Kubernetes; all others are float64. */
export function isIntegerNumber(value: number): boolean {
  return Number.isInteger(value) && Math.abs(value) < INT64_BOUND;
}

export function isGoList(value: GoValue): value is readonly GoValue[] {
  return Array.isArray(value);
}

export function isGoObject(value: GoValue): value is GoObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !isGoList(value) &&
    !(value instanceof GoFloat || value instanceof JsonNumber)
  );
}
