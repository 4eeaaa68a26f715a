import { CelObject } from '../model/value.ts';
import type { CelValue } from '../model/value.ts';
import { typeNameOf } from './type-name.ts';

/** A type as a value: the result of `type(x)`, and the value of names such as `int` or `net.IP`. */
export class CelTypeValue extends CelObject {
  /** Without type parameters: `list`, not `list(int)`. */
  readonly name: string;

  constructor(name: string) {
    super();
    this.name = name;
  }

  get typeName(): string {
    return 'type';
  }

  equals(other: CelValue): boolean {
    return other instanceof CelTypeValue && other.name === this.name;
  }

  static of(value: CelValue): CelTypeValue {
    return new CelTypeValue(typeNameOf(value));
  }
}
