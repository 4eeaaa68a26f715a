// Objects of the cluster that the main thread watches for evaluation. It publishes their changes to every worker; workers
// look them up without waiting.
import type { JsonObject, LookupResult, ObjectLookup, ObjectReference } from '../engine/index.ts';
import type { ObjectKey } from '../resources/index.ts';
import { isJsonObject, own, parseJson } from '../values/index.ts';

/** Changed objects of one kind. */
export interface WatchedChange {
  readonly apiVersion: string;
  readonly kind: string;
  /** Whether these are all published objects of the kind: others are removed. */
  readonly isAll: boolean;
  readonly objects: readonly WatchedObject[];
}

/** A lookup without an object. */
export type ObjectFailure = Extract<LookupResult, { readonly state: 'absent' | 'unreadable' }>;

/**
 * One object, or the part of it that evaluation needs; undefined: it is deleted, or no longer watched. As JSON text, it is
 * parsed when it is looked up first: a copy of an object with keys such as `1000` takes a thousand times its text.
 * `failure` is known instead of an object; `previous` is the object before its last change, for a new worker.
 */
export type WatchedObject = readonly [
  key: ObjectKey,
  object: JsonObject | string | undefined,
  failure?: ObjectFailure | undefined,
  previous?: JsonObject | string | undefined,
];

/** The result of reading an object that workers do not have. */
export type FindResult =
  /** Workers have it now. */
  { readonly state: 'published' } | ObjectFailure;

/** The result for one review of a lookup after which workers still do not have the object. */
export interface FailedLookup {
  readonly object: ObjectReference;
  readonly result: Exclude<FindResult, { readonly state: 'published' }>;
}

/** The published objects, of any kinds: in a worker for lookups, in the main thread for new workers. */
export class WatchedObjects implements ObjectLookup {
  readonly #kinds = new Map<string, PublishedKind>();

  apply({ apiVersion, kind, isAll, objects }: WatchedChange): void {
    const id = kindId({ apiVersion, kind });
    const before = this.#kinds.get(id)?.objects ?? new Map<string, Published>();
    const after = isAll ? new Map<string, Published>() : before;
    for (const [key, object, failure, previous] of objects) {
      const content = typeof object === 'object' ? ({ state: 'found', object } as const) : (object ?? failure);
      if (content === undefined) {
        after.delete(keyId(key));
      } else {
        after.set(keyId(key), { content, previous: previous ?? previousOf(before.get(keyId(key)), content) });
      }
    }
    if (after.size === 0) {
      this.#kinds.delete(id);
    } else {
      this.#kinds.set(id, { apiVersion, kind, objects: after });
    }
  }

  /** Unknown, not absent, where there is no such object: one that was just created arrives with a delay. */
  find(object: ObjectReference): LookupResult {
    const objects = this.#kinds.get(kindId(object))?.objects;
    const one = objects?.get(keyId(object));
    if (objects === undefined || one === undefined) {
      return UNKNOWN;
    }
    const result = resultOf(one);
    if (result !== one.content) {
      objects.set(keyId(object), { ...one, content: result });
    }
    return result.state !== 'found' || hasAnnotations(result.object, object.annotations) ? result : UNKNOWN;
  }

  /** The object before its last change. */
  previous(object: ObjectReference): WatchedObject[3] {
    return this.#kinds.get(kindId(object))?.objects.get(keyId(object))?.previous;
  }

  /** The lookup for a review some of whose objects could not be read, or do not exist: it gives that result instead of unknown. */
  after(failed: readonly FailedLookup[]): ObjectLookup {
    return {
      find: (object) => {
        const result = this.find(object);
        return result.state === 'unknown'
          ? (failed.find((one) => isSameObject(one.object, object))?.result ?? result)
          : result;
      },
    };
  }

  /** All objects as changes, for a new worker. */
  changes(): WatchedChange[] {
    return [...this.#kinds.values()].map(({ apiVersion, kind, objects }) => ({
      apiVersion,
      kind,
      isAll: true,
      objects: [...objects].map(([id, one]) => watchedObject(keyOfId(id), one)),
    }));
  }
}

const UNKNOWN: LookupResult = { state: 'unknown' };

type KnownResult = Exclude<LookupResult, { readonly state: 'unknown' }>;

interface Published {
  /** As text until it is looked up. */
  readonly content: string | KnownResult;
  readonly previous: JsonObject | string | undefined;
}

/** The object that another one replaces; the one before, when they are the same, or when the last one could not be read. */
function previousOf(old: Published | undefined, content: Published['content']): Published['previous'] {
  if (old === undefined || old.content === content) {
    return old?.previous;
  }
  if (typeof old.content === 'string') {
    return old.content;
  }
  switch (old.content.state) {
    case 'found':
      return old.content.object;
    case 'unreadable':
      return old.previous;
    case 'absent':
      return undefined;
    default:
      return old.content satisfies never;
  }
}

function resultOf({ content, previous }: Published): KnownResult {
  const result: KnownResult = typeof content === 'string' ? { state: 'found', object: objectOf(content) } : content;
  return result.state !== 'found' || result.previous !== undefined || previous === undefined
    ? result
    : { ...result, previous: typeof previous === 'string' ? objectOf(previous) : previous };
}

function objectOf(text: string): JsonObject {
  const object = parseJson(text);
  return isJsonObject(object) ? object : {};
}

function watchedObject(key: ObjectKey, { content, previous }: Published): WatchedObject {
  if (typeof content !== 'string' && content.state !== 'found') {
    return previous === undefined ? [key, undefined, content] : [key, undefined, content, previous];
  }
  const object = typeof content === 'string' ? content : content.object;
  return previous === undefined ? [key, object] : [key, object, undefined, previous];
}

/** Whether annotations are known: those that the object does not have are null. */
function hasAnnotations({ metadata }: JsonObject, keys: readonly string[] = []): boolean {
  const annotations = isJsonObject(metadata) ? own(metadata, 'annotations') : undefined;
  return keys.every((key) => isJsonObject(annotations) && Object.hasOwn(annotations, key));
}

interface PublishedKind {
  readonly apiVersion: string;
  readonly kind: string;
  /** By key, as text: there may be thousands in each worker. */
  readonly objects: Map<string, Published>;
}

function kindId({ apiVersion, kind }: Pick<ObjectReference, 'apiVersion' | 'kind'>): string {
  return `${apiVersion} ${kind}`;
}

function keyId({ namespace = '', name }: ObjectKey): string {
  return `${namespace}/${name}`;
}

/** The key of {@link keyId}: names of namespaces have no slash. */
function keyOfId(id: string): ObjectKey {
  const slash = id.indexOf('/');
  const name = id.slice(slash + 1);
  return slash === 0 ? { name } : { namespace: id.slice(0, slash), name };
}

function isSameObject(one: ObjectReference, other: ObjectReference): boolean {
  return kindId(one) === kindId(other) && keyId(one) === keyId(other);
}
