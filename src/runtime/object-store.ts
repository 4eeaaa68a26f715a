import { keyOf } from '../resources/index.ts';
import type { KubernetesObject, ObjectKey } from '../resources/index.ts';
import { deepFreeze } from '../values/index.ts';
import { ObjectIndex } from './object-index.ts';
import type { IndexFunction } from './object-index.ts';

/** A change of one object. */
export type Change<T extends KubernetesObject = KubernetesObject> =
  | { readonly before: undefined; readonly after: T; readonly isInitial: boolean }
  | { readonly before: T; readonly after: T; readonly isInitial: false }
  | { readonly before: T; readonly after: undefined; readonly isInitial: false };

export type ChangeListener<T extends KubernetesObject = KubernetesObject> = (change: Change<T>) => void;

/** The read side of a cache. All objects are frozen. */
export interface CachedObjects<T extends KubernetesObject = KubernetesObject> {
  readonly size: number;
  /** Grows with every change: results computed from the objects stay valid while it is equal. */
  readonly revision: number;
  get(key: ObjectKey): T | undefined;
  /** The objects of one namespace, or of all. Unordered. */
  list(namespace?: string): readonly T[];
  /** The namespaces that contain objects. */
  namespaces(): Iterable<string>;
  /** An index by a function. The same function gives the same index. */
  index(valuesOf: IndexFunction<T>): ObjectIndex<T>;
  /** The objects with an owner reference to this uid. */
  ownedBy(uid: string): readonly T[];
  /**
   * Calls `listener` for every existing object (`isInitial`), then after every change. An error of the listener is
   * passed to `onError` of the store. Returns a function that unsubscribes.
   */
  subscribe(listener: ChangeListener<T>): () => void;
}

export interface ObjectStoreOptions<T extends KubernetesObject> {
  /** Reduces an object before it is stored. Must not change its argument. Default: stores all of it. */
  readonly transform?: (object: T) => T;
  /** Called with errors of listeners, index functions and `transform`. Default: none. */
  readonly onError?: (error: unknown) => void;
}

/** The map key of cluster-scoped objects. */
const NO_NAMESPACE = '';

const ownerUids = (object: KubernetesObject): string[] => {
  const owners = object.metadata.ownerReferences;
  return owners === undefined ? [] : owners.map(({ uid }) => uid);
};

/** The objects of a type by namespace and name, with indexes. A reflector writes to it. */
export class ObjectStore<T extends KubernetesObject = KubernetesObject> implements CachedObjects<T> {
  readonly #transform: ((object: T) => T) | undefined;
  readonly #onError: ((error: unknown) => void) | undefined;
  readonly #namespaces = new Map<string, Map<string, T>>();
  readonly #indexes = new Map<IndexFunction<T>, ObjectIndex<T>>();
  readonly #listeners = new Set<ChangeListener<T>>();
  #size = 0;
  #revision = 0;
  #isFilled = false;

  constructor(options: ObjectStoreOptions<T> = {}) {
    this.#transform = options.transform;
    this.#onError = options.onError;
  }

  get size(): number {
    return this.#size;
  }

  get revision(): number {
    return this.#revision;
  }

  get({ namespace = NO_NAMESPACE, name }: ObjectKey): T | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  list(namespace?: string): readonly T[] {
    if (namespace !== undefined) {
      return [...(this.#namespaces.get(namespace)?.values() ?? [])];
    }
    return [...this.#values()];
  }

  namespaces(): Iterable<string> {
    return this.#namespaces.keys();
  }

  index(valuesOf: IndexFunction<T>): ObjectIndex<T> {
    let index = this.#indexes.get(valuesOf);
    if (index === undefined) {
      index = new ObjectIndex(valuesOf, this.#onError);
      for (const object of this.#values()) {
        index.add(object);
      }
      this.#indexes.set(valuesOf, index);
    }
    return index;
  }

  ownedBy(uid: string): readonly T[] {
    return this.index(ownerUids).get(uid);
  }

  subscribe(listener: ChangeListener<T>): () => void {
    // A new function for each call, so that a listener can subscribe twice.
    const own: ChangeListener<T> = (change) => listener(change);
    for (const object of this.#values()) {
      this.#notify(own, { before: undefined, after: object, isInitial: true });
    }
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  }

  /** Replaces all objects. An object with an unchanged resourceVersion is no change. */
  replace(items: Iterable<T>): void {
    const gone = new Map<T, true>();
    for (const object of this.#values()) {
      gone.set(object, true);
    }
    const isInitial = !this.#isFilled;
    this.#isFilled = true;
    for (const item of items) {
      const before = this.get(keyOf(item));
      if (before !== undefined) {
        gone.delete(before);
      }
      this.#set(before, item, isInitial);
    }
    for (const object of gone.keys()) {
      this.#remove(object);
    }
  }

  /** Applies a watch event. */
  apply({ type, object }: { readonly type: string; readonly object: T }): void {
    const before = this.get(keyOf(object));
    if (type === 'DELETED') {
      if (before !== undefined) {
        this.#remove(before);
      }
    } else {
      this.#set(before, object, false);
    }
  }

  *#values(): Generator<T> {
    for (const objects of this.#namespaces.values()) {
      yield* objects.values();
    }
  }

  #set(before: T | undefined, object: T, isInitial: boolean): void {
    const { uid, resourceVersion } = object.metadata;
    const known = before?.metadata;
    if (known !== undefined && known.resourceVersion === resourceVersion && known.uid === uid && uid !== undefined) {
      return;
    }
    if (before !== undefined && known?.uid !== uid) {
      // Deleted and created again between two lists: listeners see both.
      this.#remove(before);
      this.#set(undefined, object, false);
      return;
    }
    const after = deepFreeze(this.#kept(object));
    const { namespace = NO_NAMESPACE, name } = keyOf(after);
    let objects = this.#namespaces.get(namespace);
    if (objects === undefined) {
      objects = new Map();
      this.#namespaces.set(namespace, objects);
    }
    objects.set(name, after);
    this.#size += before === undefined ? 1 : 0;
    for (const index of this.#indexes.values()) {
      if (before !== undefined) {
        index.remove(before);
      }
      index.add(after);
    }
    this.#changed(before === undefined ? { before, after, isInitial } : { before, after, isInitial: false });
  }

  /** The object to store. If `transform` fails, the whole object, so that it and later ones are not lost. */
  #kept(object: T): T {
    try {
      return this.#transform === undefined ? object : this.#transform(object);
    } catch (error) {
      this.#onError?.(error);
      return object;
    }
  }

  #remove(before: T): void {
    const { namespace = NO_NAMESPACE, name } = keyOf(before);
    const objects = this.#namespaces.get(namespace);
    objects?.delete(name);
    if (objects?.size === 0) {
      this.#namespaces.delete(namespace);
    }
    this.#size -= 1;
    for (const index of this.#indexes.values()) {
      index.remove(before);
    }
    this.#changed({ before, after: undefined, isInitial: false });
  }

  #changed(change: Change<T>): void {
    this.#revision += 1;
    for (const listener of this.#listeners) {
      this.#notify(listener, change);
    }
  }

  #notify(listener: ChangeListener<T>, change: Change<T>): void {
    try {
      listener(change);
    } catch (error) {
      this.#onError?.(error);
    }
  }
}
