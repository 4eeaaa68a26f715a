/** Limits of {@link KeptEntries}. */
export interface KeptEntriesLimits<K, V> {
  /** Default: no limit. */
  readonly maxEntries?: number;
  /** Maximum size of all entries together. Default: no limit. */
  readonly maxSize?: number;
  /** The size of an entry, which never changes. Default: 0 */
  readonly sizeOf?: (value: V, key: K) => number;
}

/** A map with limits, for caches: those that were set least recently are evicted first. Reading an entry does not renew it. */
export class KeptEntries<K, V> {
  readonly #entries = new Map<K, V>();
  readonly #maxEntries: number;
  readonly #maxSize: number;
  readonly #sizeOf: (value: V, key: K) => number;
  /** Continues where the last eviction ended: a map keeps the places of deleted entries for a while, and a new iterator passes them. */
  #oldest = this.#entries.keys();
  #totalSize = 0;

  constructor({ maxEntries = Infinity, maxSize = Infinity, sizeOf = () => 0 }: KeptEntriesLimits<K, V> = {}) {
    this.#maxEntries = maxEntries;
    this.#maxSize = maxSize;
    this.#sizeOf = sizeOf;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Sets the newest entry. One that is larger than all may be together is not kept, and evicts all others. */
  set(key: K, value: V): void {
    this.delete(key);
    this.#entries.set(key, value);
    this.#totalSize += this.#sizeOf(value, key);
    while (this.#entries.size > this.#maxEntries || this.#totalSize > this.#maxSize) {
      this.#evictOldest();
    }
  }

  delete(key: K): void {
    const value = this.#entries.get(key);
    if (this.#entries.delete(key)) {
      this.#totalSize -= this.#sizeOf(value as V, key);
    }
  }

  /** Deletes the oldest entries, up to the first that is still needed. */
  deleteOldest(isStale: (value: V) => boolean): void {
    for (const [key, value] of this.#entries) {
      if (!isStale(value)) {
        return;
      }
      this.delete(key);
    }
  }

  #evictOldest(): void {
    const next = this.#oldest.next();
    if (next.done === true) {
      this.#oldest = this.#entries.keys();
    } else {
      this.delete(next.value);
    }
  }

  /** The oldest first. */
  keys(): IterableIterator<K> {
    return this.#entries.keys();
  }
}
