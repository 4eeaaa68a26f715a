import { CelObject, EvaluationFailure } from '../value.ts';
import type { CelResult, CelValue } from '../value.ts';

/** A value with named fields that is no map: `Object{…}`, `JSONPatch{…}`, the lazily computed `variables`. */
export abstract class CelStruct extends CelObject {
  /** The value of a field; undefined when there is no such field or it is not set. */
  abstract get(field: string): CelResult | undefined;

  /** Whether `has(struct.field)`. A failure is one: `no such field`, for example. */
  has(field: string): CelResult {
    const value = this.get(field);
    return value instanceof EvaluationFailure ? value : value !== undefined;
  }

  /** The names of its fields when it can be iterated, as maps can; undefined otherwise. */
  fieldNames(): readonly string[] | undefined {
    return undefined;
  }
}

/** Makes the structs of `Type{field: value}`. */
export interface StructFactory {
  /** Whether it knows the type, by its full name. */
  has(typeName: string): boolean;
  /** A new struct; a failure when a field does not exist or its value does not fit. */
  create(typeName: string, fields: ReadonlyMap<string, CelValue>): CelResult;
}
