import type { KubernetesObject } from '../resources/index.ts';

/** The values under which an object is found. Must depend on the object alone; an object for which it throws has none. */
export type IndexFunction<T extends KubernetesObject> = (object: T) => Iterable<string>;

/** Objects by a value that is computed from them, kept up to date change by change. */
export class ObjectIndex<T extends KubernetesObject = KubernetesObject> {
  readonly #valuesOf: IndexFunction<T>;
  readonly #objects = new Map<string, Set<T>>();

  constructor(valuesOf: IndexFunction<T>, onError?: (error: unknown) => void) {
    this.#valuesOf = (object) => {
      try {
        return [...valuesOf(object)];
      } catch (error) {
        onError?.(error);
        return [];
      }
    };
  }

  /** The objects that have this value, in no order. */
  get(value: string): readonly T[] {
    return [...(this.#objects.get(value) ?? [])];
  }

  /** Number of objects that have this value. */
  count(value: string): number {
    return this.#objects.get(value)?.size ?? 0;
  }

  /** All values that objects have. */
  values(): IterableIterator<string> {
    return this.#objects.keys();
  }

  add(object: T): void {
    for (const value of this.#valuesOf(object)) {
      const objects = this.#objects.get(value);
      if (objects === undefined) {
        this.#objects.set(value, new Set([object]));
      } else {
        objects.add(object);
      }
    }
  }

  remove(object: T): void {
    for (const value of this.#valuesOf(object)) {
      const objects = this.#objects.get(value);
      if (objects?.delete(object) === true && objects.size === 0) {
        this.#objects.delete(value);
      }
    }
  }
}
