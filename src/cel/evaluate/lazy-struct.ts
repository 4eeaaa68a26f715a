import type { CelResult, CelValue } from '../model/value.ts';
import { CelStruct } from './struct.ts';

/** A struct whose fields are computed once, on first use: `variables` of a policy. */
export class LazyStruct extends CelStruct {
  readonly typeName: string;
  readonly #compute = new Map<string, () => CelResult>();
  readonly #computed = new Map<string, CelResult>();

  constructor(typeName: string) {
    super();
    this.typeName = typeName;
  }

  /** Declares a field. `compute` is called at most once, on first use. */
  define(name: string, compute: () => CelResult): void {
    this.#compute.set(name, compute);
  }

  get(field: string): CelResult | undefined {
    const known = this.#computed.get(field);
    if (known !== undefined) {
      return known;
    }
    const value = this.#compute.get(field)?.();
    if (value !== undefined) {
      this.#computed.set(field, value);
    }
    return value;
  }

  /** Names of all declared fields, without computing them. */
  override fieldNames(): readonly string[] {
    return [...this.#compute.keys()];
  }

  equals(other: CelValue): boolean {
    return other === this;
  }
}
