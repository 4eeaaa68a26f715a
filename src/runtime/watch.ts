// From changes of objects to the keys that are reconciled: which changes count, and for whom.
import { groupVersionOf, keyOf, keyText } from '../resources/index.ts';
import type { KubernetesObject, ObjectKey } from '../resources/index.ts';
import type { Change, ObjectView } from './object-store.ts';
import { DEFAULT_PRIORITY, LOW_PRIORITY } from './work-queue.ts';

/** Whether a change is worth a reconciliation. */
export type Predicate<T extends KubernetesObject = KubernetesObject> = (change: Change<T>) => boolean;
/** The keys that an object is about. */
export type KeyMapper<T extends KubernetesObject = KubernetesObject> = (object: T) => Iterable<ObjectKey>;

/** What is needed of a cache. */
export interface WatchedCache<T extends KubernetesObject = KubernetesObject> extends Pick<ObjectView<T>, 'subscribe'> {
  readonly name: string;
  readonly synced: Promise<void>;
}

export interface WatchOptions<T extends KubernetesObject> {
  /** Default: {@link ownKey}. */
  readonly keys?: KeyMapper<T>;
  /** All must agree. Default: every change counts. */
  readonly when?: readonly Predicate<T>[];
}

/** A cache whose changes make keys. See {@link watch}. */
export interface Watch {
  readonly name: string;
  readonly synced: Promise<void>;
  /** Begins to make keys, first of all objects that are there. Returns what ends it. */
  connect(enqueue: (key: ObjectKey, priority: number) => void, onError: (error: unknown) => void): () => void;
}

/**
 * Makes keys of the changes of a cache: of the object as it is, and as it was, so that an owner learns of what it lost.
 * What is there at the start has {@link LOW_PRIORITY}.
 */
export function watch<T extends KubernetesObject>(cache: WatchedCache<T>, options: WatchOptions<T> = {}): Watch {
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
          // One reconciliation too many does no harm; one that is missing does.
          onError(error);
          return true;
        }
      };
      return cache.subscribe((change) => {
        if (counts(change)) {
          // Once for each key: a worker that waits takes the first at once, and would work twice.
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

/** The object itself. */
export function ownKey(object: KubernetesObject): readonly ObjectKey[] {
  return [keyOf(object)];
}

/** The owner that manages the object, if it is of this kind, in whatever version. */
export function controllerKey(owner: {
  readonly group: string;
  readonly kind: string;
  readonly namespaced: boolean;
}): KeyMapper {
  return ({ metadata }) =>
    (metadata.ownerReferences ?? [])
      .filter(
        ({ controller, kind, apiVersion }) =>
          controller === true && kind === owner.kind && groupVersionOf(apiVersion).group === owner.group,
      )
      .map(({ name }) =>
        owner.namespaced && metadata.namespace !== undefined ? { namespace: metadata.namespace, name } : { name },
      );
}

/** What is desired changed, or the object came, goes or went; not its status, and not its labels. */
export const generationChanged: Predicate = ({ before, after }) =>
  before === undefined ||
  after === undefined ||
  before.metadata.generation !== after.metadata.generation ||
  before.metadata.deletionTimestamp !== after.metadata.deletionTimestamp;

export const labelsChanged: Predicate = ({ before, after }) =>
  !sameTexts(before?.metadata.labels, after?.metadata.labels);

export const annotationsChanged: Predicate = ({ before, after }) =>
  !sameTexts(before?.metadata.annotations, after?.metadata.annotations);

/** One of them agrees. */
export function anyOf<T extends KubernetesObject>(...predicates: readonly Predicate<T>[]): Predicate<T> {
  return (change) => predicates.some((predicate) => predicate(change));
}

function sameTexts(a: Readonly<Record<string, string>> = {}, b: Readonly<Record<string, string>> = {}): boolean {
  const keys = Object.keys(a);
  return keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key]);
}
