import type { KubernetesObject } from '../resources/index.ts';

/** The values of an object in an index. Depends on the object alone. An object for which it throws has no values. */
export type IndexFunction<T extends KubernetesObject> = (object: T) => Iterable<string>;

/** Objects by a computed value, updated with every change. */
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

  /** The objects with this value, unordered. */
  get(value: string): readonly T[] {
    return [...(this.#objects.get(value) ?? [])];
  }

  /** Number of objects with this value. */
  count(value: string): number {
    return this.#objects.get(value)?.size ?? 0;
  }

  /** All values of all objects. */
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
