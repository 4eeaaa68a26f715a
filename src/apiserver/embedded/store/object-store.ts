// The state of an embedded cluster: one synchronous state machine. A change is written down, then made, then told.
import { ApiError } from '../../../cluster/index.ts';
import type { KubernetesObject, MutableObject } from '../../../resources/index.ts';
import type { Change } from './change-log.ts';
import { Collection } from './collection.ts';
import { deepFreeze } from './deep-freeze.ts';
import type { Journal, JournalEntry } from './journal.ts';

/** How many changes of a resource watchers can go back to, at least. An API server keeps between 100 and 102,400. */
export const HISTORY_SIZE = 2048;

/**
 * Most bytes of one object as JSON: what etcd takes in one request by default (`--max-request-bytes`), which is what limits
 * objects of an API server.
 */
export const MAX_OBJECT_BYTES = 1.5 * 1024 * 1024;

/** Most bytes of a request to an API server: more than what is stored, so that etcd has the last word about most objects. */
const MAX_REQUEST_BYTES = 3 * 1024 * 1024;

/** What may be done to one object. `expected` is what is there now: when it is not, nothing is done. */
export type StoreWrite =
  | {
      readonly type: 'put';
      readonly collection: string;
      /** Becomes the store's: it is frozen, and gets its resourceVersion. */
      readonly object: MutableObject;
      readonly expected: KubernetesObject | undefined;
    }
  | { readonly type: 'remove'; readonly collection: string; readonly expected: KubernetesObject };

/** Hears of every change right after it was made. Must not throw and must not write: it may only make notes. */
export type ChangeListener = (collection: string, change: Change) => void;

export interface ObjectStoreOptions {
  readonly journal: Journal;
  /** Default: {@link HISTORY_SIZE}. */
  readonly historySize?: number;
}

export class ObjectStore {
  readonly #journal: Journal;
  readonly #historySize: number;
  readonly #collections = new Map<string, Collection>();
  readonly #listeners = new Set<ChangeListener>();
  readonly #openedAt: number;
  #revision: number;

  constructor({ journal, historySize = HISTORY_SIZE }: ObjectStoreOptions) {
    this.#journal = journal;
    this.#historySize = historySize;
    const { revision, objects } = journal.load();
    this.#revision = revision;
    this.#openedAt = revision;
    for (const { collection, object } of objects) {
      this.collection(collection).restore(deepFreeze(object));
    }
  }

  /** Of the newest change. */
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

  onChange(listener: ChangeListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * All writes, or none. The objects as they are now, each with a revision of its own; undefined when one was not what was
   * expected. Throws what the journal throws.
   */
  commit(writes: readonly StoreWrite[]): readonly KubernetesObject[] | undefined {
    const entries: JournalEntry[] = [];
    const changes: { readonly collection: Collection; readonly change: Change; readonly size: number }[] = [];
    let revision = this.#revision;
    for (const write of writes) {
      const collection = this.collection(write.collection);
      const subject = write.type === 'put' ? write.object : write.expected;
      const { namespace = '', name = '' } = subject.metadata as { namespace?: string; name?: string };
      if (collection.get(namespace, name) !== write.expected) {
        return undefined;
      }
      revision += 1;
      const object: MutableObject =
        write.type === 'put' ? write.object : ({ ...write.expected } as unknown as MutableObject);
      object.metadata = { ...object.metadata, resourceVersion: String(revision) };
      const text = sizedText(object);
      const entry = { collection: write.collection, namespace, name, revision };
      entries.push({ ...entry, text: write.type === 'put' ? text : undefined });
      const type = write.type === 'remove' ? 'DELETED' : write.expected === undefined ? 'ADDED' : 'MODIFIED';
      const frozen = deepFreeze(object) as unknown as KubernetesObject;
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

/** @throws ApiError when the object is too large to be stored, in the words of etcd. */
function sizedText(object: MutableObject): string {
  const text = JSON.stringify(object);
  // No letter takes more than three bytes: most texts need not be counted.
  const bytes = text.length * 3 > MAX_OBJECT_BYTES ? Buffer.byteLength(text) : 0;
  if (bytes > MAX_REQUEST_BYTES) {
    throw new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_REQUEST_BYTES}`);
  }
  if (bytes > MAX_OBJECT_BYTES) {
    throw new ApiError(500, 'Unknown', 'etcdserver: request is too large');
  }
  return text;
}
