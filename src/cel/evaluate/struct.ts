import { CelObject, EvaluationFailure } from '../model/value.ts';
import type { CelResult, CelValue, WorkMeter } from '../model/value.ts';

/** A value with named fields that is not a map: `Object{…}`, `JSONPatch{…}`, the lazy `variables`. */
export abstract class CelStruct extends CelObject {
  /** The value of a field; undefined if it does not exist or is not set. */
  abstract get(field: string): CelResult | undefined;

  /** `has(struct.field)`. A failure is returned for an unknown field, for example. */
  has(field: string): CelResult {
    const value = this.get(field);
    return value instanceof EvaluationFailure ? value : value !== undefined;
  }

  /** Field names if the struct can be iterated like a map; undefined otherwise. */
  fieldNames(): readonly string[] | undefined {
    return undefined;
  }
}

/** Creates structs for `Type{field: value}`. */
export interface StructFactory {
  /** Whether the type is known, by its full name. */
  has(typeName: string): boolean;
  /** Creates a struct; a failure if a field does not exist or has an invalid value. `meter` counts the work if values are copied. */
  create(typeName: string, fields: ReadonlyMap<string, CelValue>, meter: WorkMeter): CelResult;
}
