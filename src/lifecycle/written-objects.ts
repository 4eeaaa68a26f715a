// Objects of a cache, with what this process has written since: a cache learns of a write some milliseconds later, and a
// decision made from what it had before would be made twice.
import { keyOf, keyText, type KubernetesObject, type ObjectKey } from '../resources/index.ts';
import type { ObjectCache } from '../runtime/index.ts';

interface Written<T> {
  /** What was written last; undefined when it was deleted. */
  readonly object: T | undefined;
  /** The versions that a cache may still show although it is behind. */
  readonly older: ReadonlySet<string | undefined>;
}

/** A cache as if it knew of its process's own writes at once. */
export class WrittenObjects<T extends KubernetesObject = KubernetesObject> {
  readonly #cache: ObjectCache<T>;
  readonly #written = new Map<string, Written<T>>();

  constructor(cache: ObjectCache<T>) {
    this.#cache = cache;
    cache.subscribe(({ before, after }) => {
      const object = after ?? before;
      const key = object === undefined ? '' : keyText(keyOf(object));
      const written = this.#written.get(key);
      // Anything but a version from before the write is at least as new as it.
      if (written !== undefined && !written.older.has(after?.metadata.resourceVersion)) {
        this.#written.delete(key);
      }
    });
  }

  get(key: ObjectKey): T | undefined {
    const written = this.#written.get(keyText(key));
    return written === undefined ? this.#cache.get(key) : written.object;
  }

  /** What the cluster answered to a write. `object` undefined: it is gone. */
  wrote(key: ObjectKey, object: T | undefined): void {
    const text = keyText(key);
    const before = this.#written.get(text);
    const cached = this.#cache.get(key)?.metadata.resourceVersion;
    if (object?.metadata.resourceVersion === cached) {
      // Nothing was changed by it, or the cache was quicker.
      this.#written.delete(text);
      return;
    }
    const older = new Set([...(before?.older ?? []), before?.object?.metadata.resourceVersion, cached]);
    older.delete(object?.metadata.resourceVersion);
    this.#written.set(text, { object, older });
  }

  /** Forgets what was written: the cluster says that it is not so any more. */
  forget(key: ObjectKey): void {
    this.#written.delete(keyText(key));
  }

  /** The objects of a list of the cache's, as they are now, and those that it has not seen yet and that belong to it. */
  current(cached: readonly T[], belongs: (object: T) => boolean): readonly T[] {
    const seen = new Set(cached.map((object) => keyText(keyOf(object))));
    const known = cached.flatMap((object) => this.get(keyOf(object)) ?? []);
    const unseen = [...this.#written].flatMap(([key, { object }]) =>
      object !== undefined && !seen.has(key) && belongs(object) ? [object] : [],
    );
    return [...known, ...unseen];
  }
}
