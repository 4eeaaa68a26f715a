// Maps changes of objects to the keys to reconcile.
import { keyOf, keyText } from '../resources/index.ts';
import type { KubernetesObject, ObjectKey } from '../resources/index.ts';
import type { Change, CachedObjects } from './object-store.ts';
import { DEFAULT_PRIORITY, LOW_PRIORITY } from './work-queue.ts';

/** Whether a change causes a reconciliation. */
export type Predicate<T extends KubernetesObject = KubernetesObject> = (change: Change<T>) => boolean;
/** The keys to reconcile for an object. */
type KeyMapper<T extends KubernetesObject = KubernetesObject> = (object: T) => Iterable<ObjectKey>;

/** The part of a cache that a watch uses. */
export interface WatchedCache<T extends KubernetesObject = KubernetesObject> extends Pick<
  CachedObjects<T>,
  'subscribe'
> {
  readonly name: string;
  readonly synced: Promise<void>;
}

export interface WatchMapping<T extends KubernetesObject> {
  /** Default: {@link ownKey}. */
  readonly keys?: KeyMapper<T>;
  /** All must hold. Default: every change counts. */
  readonly when?: readonly Predicate<T>[];
}

/** A cache whose changes enqueue keys. See {@link watch}. */
export interface Watch {
  readonly name: string;
  readonly synced: Promise<void>;
  /** Enqueues keys, first for all existing objects. Returns a function that disconnects. */
  connect(enqueue: (key: ObjectKey, priority: number) => void, onError: (error: unknown) => void): () => void;
}

/**
 * Maps changes of a cache to keys: of the object before and after the change, so that a former owner is reconciled too.
 * Objects of the first list have {@link LOW_PRIORITY}.
 */
export function watch<T extends KubernetesObject>(cache: WatchedCache<T>, options: WatchMapping<T> = {}): Watch {
  const keys = options.keys ?? ownKey;
  const when = options.when ?? [];
  return {
    name: cache.name,
    synced: cache.synced,
    connect(enqueue, onError) {
      const counts = (change: Change<T>): boolean => {
        try {
          return when.every((predicate) => predicate(change));
        } catch (error) {
          // An extra reconciliation is harmless, a missing one is not.
          onError(error);
          return true;
        }
      };
      return cache.subscribe((change) => {
        if (counts(change)) {
          // Each key once: an idle worker takes the first at once, and a second one would repeat its work.
          const found = new Map<string, ObjectKey>();
          for (const object of [change.before, change.after]) {
            try {
              for (const key of object === undefined ? [] : keys(object)) {
                found.set(keyText(key), key);
              }
            } catch (error) {
              onError(error);
            }
          }
          for (const key of found.values()) {
            enqueue(key, change.isInitial ? LOW_PRIORITY : DEFAULT_PRIORITY);
          }
        }
      });
    },
  };
}

/** The key of the object itself. */
function ownKey(object: KubernetesObject): readonly ObjectKey[] {
  return [keyOf(object)];
}

/** The spec changed, or the object was created or deleted; not its status or labels. */
export const generationChanged: Predicate = ({ before, after }) =>
  before === undefined ||
  after === undefined ||
  before.metadata.generation !== after.metadata.generation ||
  before.metadata.deletionTimestamp !== after.metadata.deletionTimestamp;

export const annotationsChanged: Predicate = ({ before, after }) =>
  !sameTexts(before?.metadata.annotations, after?.metadata.annotations);

/** At least one holds. */
export function anyOf<T extends KubernetesObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.some((predicate) => predicate(change));
}

function sameTexts(a: Readonly<Record<string, string>> = {}, b: Readonly<Record<string, string>> = {}): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}
