// Objects of a cache, with what this process has written since: a cache learns of a write some milliseconds later, and a
// decision made from what it had before would be made twice.
import { keyOf, keyText, type KubernetesObject, type ObjectKey } from '../resources/index.ts';
import type { ObjectCache } from '../runtime/index.ts';

type Written<T> =
  | { readonly key: ObjectKey; readonly object: T }
  /** It was deleted: the cache may still have the object of this uid. */
  | { readonly key: ObjectKey; readonly goneUid: string | undefined };

/** A cache as if it knew of its process's own writes at once. */
export class WrittenObjects<T extends KubernetesObject = KubernetesObject> {
  readonly #cache: Pick<ObjectCache<T>, 'get' | 'subscribe'>;
  /** What the cache is behind of. */
  readonly #written = new Map<string, Written<T>>();

  constructor(cache: Pick<ObjectCache<T>, 'get' | 'subscribe'>) {
    this.#cache = cache;
    cache.subscribe(({ before, after }) => {
      const object = after ?? before;
      const text = object === undefined ? '' : keyText(keyOf(object));
      const written = this.#written.get(text);
      if (written !== undefined && (after === undefined ? isSameObject(before, written) : !isBehind(after, written))) {
        this.#written.delete(text);
      }
    });
  }

  get(key: ObjectKey): T | undefined {
    const cached = this.#cache.get(key);
    const written = this.#written.get(keyText(key));
    if (written === undefined || (cached !== undefined && !isBehind(cached, written))) {
      return cached;
    }
    return 'object' in written ? written.object : undefined;
  }

  /** What the cluster answered to a write. `object` undefined: it is gone. */
  wrote(key: ObjectKey, object: T | undefined): void {
    const text = keyText(key);
    const written: Written<T> = object === undefined ? { key, goneUid: this.get(key)?.metadata.uid } : { key, object };
    const cached = this.#cache.get(key);
    if (cached === undefined ? object === undefined : !isBehind(cached, written)) {
      // The cache was quicker, or nothing was changed by it.
      this.#written.delete(text);
    } else {
      this.#written.set(text, written);
    }
  }

  /** Forgets what was written: the cluster says that it is not so any more. */
  forget(key: ObjectKey): void {
    this.#written.delete(keyText(key));
  }

  /** The objects of a list of the cache's, as they are now, and those that it has not seen yet and that belong to it. */
  current(cached: readonly T[], belongs: (object: T) => boolean): readonly T[] {
    const known = cached.flatMap((object) => this.get(keyOf(object)) ?? []);
    const unseen = this.#written
      .values()
      .flatMap((written) =>
        'object' in written && this.#cache.get(written.key) === undefined && belongs(written.object)
          ? [written.object]
          : [],
      );
    return [...known, ...unseen];
  }
}

/**
 * Whether an object of a cache is from before a write. Versions of one object grow (KEP-5504); where one is no number, the
 * cache is believed.
 */
function isBehind<T extends KubernetesObject>({ metadata }: T, written: Written<T>): boolean {
  if (!('object' in written)) {
    return metadata.uid === written.goneUid;
  }
  return versionOf(metadata.resourceVersion) < versionOf(written.object.metadata.resourceVersion);
}

/** Whether a write was to this object, and not to another one that had its name before or since. */
function isSameObject<T extends KubernetesObject>(object: T | undefined, written: Written<T>): boolean {
  return object?.metadata.uid === ('object' in written ? written.object.metadata.uid : written.goneUid);
}

/** Exact: versions of a cluster that counts in nanoseconds are past 2 ** 53. */
function versionOf(resourceVersion: string | undefined): bigint {
  return resourceVersion !== undefined && /^[0-9]{1,30}$/.test(resourceVersion) ? BigInt(resourceVersion) : 0n;
}
