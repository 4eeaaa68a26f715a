import { CelObject } from '../model/value.ts';
import type { CelValue, WorkMeter } from '../model/value.ts';
import { equalValues } from './equality.ts';
import { sizeOf } from './size.ts';

/** An optional value. */
export class CelOptional extends CelObject {
  /** `optional.none()`. */
  static readonly NONE = new CelOptional(undefined);

  readonly value: CelValue | undefined;

  constructor(value: CelValue | undefined) {
    super();
    this.value = value;
  }

  get typeName(): string {
    return 'optional_type';
  }

  override get costSize(): number {
    return this.value === undefined ? 1 : sizeOf(this.value);
  }

  equals(other: CelValue, meter?: WorkMeter): boolean {
    if (!(other instanceof CelOptional) || this.value === undefined || other.value === undefined) {
      return other instanceof CelOptional && this.value === other.value;
    }
    return equalValues(this.value, other.value, meter);
  }
}
