import type { CelResult, CelValue } from '../value.ts';
import { CelStruct } from './struct.ts';

/** Fields that are computed when they are first looked at, once: `variables` of a policy. */
export class LazyStruct extends CelStruct {
  readonly typeName: string;
  readonly #compute = new Map<string, () => CelResult>();
  readonly #computed = new Map<string, CelResult>();

  constructor(typeName: string) {
    super();
    this.typeName = typeName;
  }

  /** Declares a field. What computes it is called at most once, and never when nothing looks at it. */
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

  /** Names of all declared fields; none is computed. */
  override fieldNames(): readonly string[] {
    return [...this.#compute.keys()];
  }

  equals(other: CelValue): boolean {
    return other === this;
  }
}
