// A cache plus this process's own recent writes. Watches deliver a write some milliseconds late; a decision from the stale
// object would be made twice.
import { keyOf, keyText, type KubernetesObject, type ObjectKey } from '../resources/index.ts';
import type { ObjectCache } from './object-cache.ts';

type Written<T> =
  | { readonly key: ObjectKey; readonly object: T }
  /** A deletion; the cache may still have the object with this uid. */
  | { readonly key: ObjectKey; readonly goneUid: string | undefined };

/** A cache that shows this process's own writes at once. */
export class WrittenObjects<T extends KubernetesObject = KubernetesObject> {
  readonly #cache: Pick<ObjectCache<T>, 'get' | 'subscribe'>;
  /** Writes that the cache does not show yet, by key. */
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

  /** Records a write. @param object the response; undefined after a deletion */
  recordWrite(key: ObjectKey, object: T | undefined): void {
    const text = keyText(key);
    const written: Written<T> = object === undefined ? { key, goneUid: this.get(key)?.metadata.uid } : { key, object };
    const cached = this.#cache.get(key);
    if (cached === undefined ? object === undefined : !isBehind(cached, written)) {
      // The cache shows the write already, or the write changed nothing.
      this.#written.delete(text);
    } else {
      this.#written.set(text, written);
    }
  }

  /** Forgets a write that a later response has proved outdated. */
  forget(key: ObjectKey): void {
    this.#written.delete(keyText(key));
  }

  /**
   * Updates a list from the cache by recent writes.
   * @param belongs whether a created object, which the cache does not have yet, belongs to the list
   */
  current(cached: readonly T[], belongs: (object: T) => boolean): readonly T[] {
    const updated = cached.flatMap((object) => this.get(keyOf(object)) ?? []);
    const created = this.#written
      .values()
      .flatMap((written) =>
        'object' in written && this.#cache.get(written.key) === undefined && belongs(written.object)
          ? [written.object]
          : [],
      );
    return [...updated, ...created];
  }
}

/**
 * Whether a cached object is older than a write. Resource versions of one object grow (KEP-5504). If one is no number, the
 * cached object counts as newer.
 */
function isBehind<T extends KubernetesObject>({ metadata }: T, written: Written<T>): boolean {
  if (!('object' in written)) {
    return metadata.uid === written.goneUid;
  }
  return versionOf(metadata.resourceVersion) < versionOf(written.object.metadata.resourceVersion);
}

/** Whether a write was to this object, not to another one of the same name. */
function isSameObject<T extends KubernetesObject>(object: T | undefined, written: Written<T>): boolean {
  return object?.metadata.uid === ('object' in written ? written.object.metadata.uid : written.goneUid);
}

/** A bigint, because clusters that use nanoseconds as versions exceed 2 ** 53. */
function versionOf(resourceVersion: string | undefined): bigint {
  return resourceVersion !== undefined && /^[0-9]{1,30}$/.test(resourceVersion) ? BigInt(resourceVersion) : 0n;
}
