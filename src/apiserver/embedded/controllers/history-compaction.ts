import type { CollectionStore } from '../store/collection-store.ts';

/**
 * Interval in which the history is compacted, as API servers do in etcd (`--etcd-compaction-interval`). Changes are kept for one to
 * two intervals. Milliseconds.
 */
const INTERVAL_MS = 300_000;

/** Drops old changes, which would keep objects in memory that no longer exist. */
export class HistoryCompaction {
  readonly #store: CollectionStore;
  #timer: NodeJS.Timeout | undefined;
  /** The newest revision at the last compaction. */
  #before: number;

  constructor(store: CollectionStore) {
    this.#store = store;
    this.#before = store.revision;
  }

  start(): void {
    this.#timer = setInterval(() => this.compact(), INTERVAL_MS);
    this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Drops what was there at the compaction before. */
  compact(): void {
    for (const { log } of this.#store.collections()) {
      log.forget(this.#before);
    }
    this.#before = this.#store.revision;
  }
}
