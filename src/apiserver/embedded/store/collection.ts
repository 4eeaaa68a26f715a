import type { KubernetesObject } from '../../../resources/index.ts';
import { ChangeLog } from './change-log.ts';
import type { StoredChange } from './change-log.ts';

/** The objects of one namespace by name, sorted on demand. */
class NamedObjects {
  readonly byName = new Map<string, KubernetesObject>();
  #names: string[] | undefined;

  set(name: string, object: KubernetesObject): void {
    if (!this.byName.has(name)) {
      this.#names = undefined;
    }
    this.byName.set(name, object);
  }

  delete(name: string): void {
    this.byName.delete(name);
    this.#names = undefined;
  }

  *inOrder(): Generator<KubernetesObject> {
    this.#names ??= [...this.byName.keys()].sort();
    for (const name of this.#names) {
      const object = this.byName.get(name);
      if (object !== undefined) {
        yield object;
      }
    }
  }
}

/** All objects of a resource in all versions, and their newest changes. */
export class Collection {
  readonly name: string;
  readonly log: ChangeLog;
  readonly #namespaces = new Map<string, NamedObjects>();
  readonly #listeners = new Set<() => void>();
  /** The revision of the newest change. */
  revision: number;
  size = 0;

  constructor(name: string, historySize: number, revision: number) {
    this.name = name;
    this.log = new ChangeLog(historySize, revision);
    this.revision = revision;
  }

  get(namespace: string, name: string): KubernetesObject | undefined {
    return this.#namespaces.get(namespace)?.byName.get(name);
  }

  /** In the order of `namespace/name`. */
  *list(namespace?: string): Generator<KubernetesObject> {
    if (namespace !== undefined) {
      yield* this.#namespaces.get(namespace)?.inOrder() ?? [];
      return;
    }
    // `a-b/x` sorts before `a/x`, because `-` sorts before the slash.
    const names = [...this.#namespaces.keys()].sort((left, right) => (`${left}/` < `${right}/` ? -1 : 1));
    for (const name of names) {
      yield* this.#namespaces.get(name)?.inOrder() ?? [];
    }
  }

  /** The objects at a revision. Undefined when the history does not reach back to it. */
  listAt(revision: number, namespace?: string): readonly KubernetesObject[] | undefined {
    if (revision < this.log.floor) {
      return undefined;
    }
    if (this.revision <= revision) {
      return [...this.list(namespace)];
    }
    const past = new Map<string, KubernetesObject>();
    for (const object of this.list(namespace)) {
      past.set(pathOf(object), object);
    }
    for (const { object, previous } of this.log.backTo(revision)) {
      if (namespace !== undefined && (object.metadata.namespace ?? '') !== namespace) {
        continue;
      }
      if (previous === undefined) {
        past.delete(pathOf(object));
      } else {
        past.set(pathOf(object), previous);
      }
    }
    return [...past.entries()].sort(([left], [right]) => (left < right ? -1 : 1)).map(([, object]) => object);
  }

  /** Adds an object from the journal when the store is opened. It is no change. */
  restore(object: KubernetesObject): void {
    this.#set(object);
  }

  /** @param size characters of the object as JSON */
  apply(change: StoredChange, size: number): void {
    if (change.type === 'DELETED') {
      const namespace = change.object.metadata.namespace ?? '';
      const objects = this.#namespaces.get(namespace);
      objects?.delete(change.object.metadata.name ?? '');
      this.size -= 1;
      if (objects?.byName.size === 0) {
        this.#namespaces.delete(namespace);
      }
    } else {
      this.#set(change.object);
    }
    this.revision = change.revision;
    this.log.append(change, size);
    this.wake();
  }

  /** Calls all listeners. */
  wake(): void {
    for (const listener of this.#listeners) {
      listener();
    }
  }

  /** Calls the listener after each change. Returns the unsubscribe function. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #set(object: KubernetesObject): void {
    const { namespace = '', name = '' } = object.metadata;
    let objects = this.#namespaces.get(namespace);
    if (objects === undefined) {
      objects = new NamedObjects();
      this.#namespaces.set(namespace, objects);
    }
    if (!objects.byName.has(name)) {
      this.size += 1;
    }
    objects.set(name, object);
  }
}

/** `namespace/name`; `name` for cluster-scoped objects. */
export function pathOf({ metadata: { namespace, name = '' } }: KubernetesObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
