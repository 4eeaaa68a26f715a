// The state of an embedded cluster. A change is journaled, applied and published in one synchronous step.
import { ApiError } from '../../../cluster/index.ts';
import type { KubernetesObject, MutableObject } from '../../../resources/index.ts';
import { deepFreeze } from '../../../values/index.ts';
import type { StoredChange } from './change-log.ts';
import { Collection } from './collection.ts';
import type { Journal, JournalEntry } from './journal.ts';

/** Minimum number of changes of a resource that are kept for watches. API servers keep 100 to 102,400. */
const HISTORY_SIZE = 2048;

/**
 * Largest object as JSON. It is the default limit of requests in etcd (`--max-request-bytes`), which limits objects of API
 * servers as well. Bytes.
 */
export const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024;

/** Largest request of API servers. Bytes. */
const MAX_REQUEST_BYTES = 3 * 1024 * 1024;

/** A conditional write of an object. It fails if the stored object is not `expected`. */
export type StoreWrite =
  | {
      readonly type: 'put';
      readonly collection: string;
      /** The new object. The store sets its resourceVersion and freezes it, so the caller must not use it again. */
      readonly object: MutableObject;
      readonly expected: KubernetesObject | undefined;
    }
  | { readonly type: 'remove'; readonly collection: string; readonly expected: KubernetesObject };

/** Called after every change. Must not throw, and must not write to the store. */
export type StoredChangeListener = (collection: string, change: StoredChange) => void;

export interface CollectionStoreOptions {
  readonly journal: Journal;
  /** Default: {@link HISTORY_SIZE}. */
  readonly historySize?: number;
}

export class CollectionStore {
  readonly #journal: Journal;
  readonly #historySize: number;
  readonly #collections = new Map<string, Collection>();
  readonly #listeners = new Set<StoredChangeListener>();
  readonly #openedAt: number;
  #revision: number;

  constructor({ journal, historySize = HISTORY_SIZE }: CollectionStoreOptions) {
    this.#journal = journal;
    this.#historySize = historySize;
    const { revision, objects } = journal.load();
    this.#revision = revision;
    this.#openedAt = revision;
    for (const { collection, object } of objects) {
      this.collection(collection).restore(deepFreeze(object));
    }
  }

  /** The revision of the newest change. */
  get revision(): number {
    return this.#revision;
  }

  collection(name: string): Collection {
    let collection = this.#collections.get(name);
    if (collection === undefined) {
      collection = new Collection(name, this.#historySize, this.#openedAt);
      this.#collections.set(name, collection);
    }
    return collection;
  }

  collections(): Iterable<Collection> {
    return this.#collections.values();
  }

  get(collection: string, namespace: string, name: string): KubernetesObject | undefined {
    return this.#collections.get(collection)?.get(namespace, name);
  }

  onChange(listener: StoredChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Applies all writes, or none. Returns the stored objects, each with its own revision, or undefined when an `expected` object
   * is not the stored one. Throws the errors of the journal.
   */
  commit(writes: readonly StoreWrite[]): readonly KubernetesObject[] | undefined {
    const entries: JournalEntry[] = [];
    const changes: { readonly collection: Collection; readonly change: StoredChange; readonly size: number }[] = [];
    let revision = this.#revision;
    for (const write of writes) {
      const collection = this.collection(write.collection);
      const subject = write.type === 'put' ? write.object : write.expected;
      const { namespace = '', name = '' } = subject.metadata as { namespace?: string; name?: string };
      if (collection.get(namespace, name) !== write.expected) {
        return undefined;
      }
      revision += 1;
      const object: MutableObject = write.type === 'put' ? write.object : ({ ...write.expected } as MutableObject);
      object.metadata = { ...object.metadata, resourceVersion: String(revision) };
      const text = sizedText(object);
      const entry = { collection: write.collection, namespace, name, revision };
      entries.push({ ...entry, text: write.type === 'put' ? text : undefined });
      const type = write.type === 'remove' ? 'DELETED' : write.expected === undefined ? 'ADDED' : 'MODIFIED';
      const frozen = deepFreeze(object) as KubernetesObject;
      changes.push({
        collection,
        change: { type, revision, object: frozen, previous: write.expected },
        size: text.length,
      });
    }
    this.#journal.append(entries);
    this.#revision = revision;
    for (const { collection, change, size } of changes) {
      collection.apply(change, size);
      for (const listener of this.#listeners) {
        listener(collection.name, change);
      }
    }
    return changes.map(({ change }) => change.object);
  }

  close(): void {
    this.#journal.close();
  }
}

/** @throws ApiError with etcd's message when the object is too large */
function sizedText(object: MutableObject): string {
  const text = JSON.stringify(object);
  // A UTF-16 code unit has at most three bytes in UTF-8, so most texts need not be measured.
  const bytes = text.length * 3 > MAX_OBJECT_BYTES ? Buffer.byteLength(text) : 0;
  if (bytes > MAX_REQUEST_BYTES) {
    throw new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_REQUEST_BYTES}`);
  }
  if (bytes > MAX_OBJECT_BYTES) {
    throw new ApiError(500, 'Unknown', 'etcdserver: request is too large');
  }
  return text;
}
