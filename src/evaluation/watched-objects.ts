// Objects of the cluster that the main thread watches for evaluation. It publishes their changes to every worker; workers
// look them up without waiting.
import type { JsonObject, LookupResult, ObjectLookup, ObjectReference } from '../engine/index.ts';
import type { ObjectKey } from '../resources/index.ts';
import { isJsonObject, KeptEntries, own, parseJson } from '../values/index.ts';

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
 * The JSON text of one object, or of the part of it that evaluation needs; undefined: it is deleted, or no longer watched.
 * Text, because each thread keeps all of them: objects take several times their text, and a copy of one with keys such as
 * `1000` a thousand times. `failure` is known instead of an object; `previous` is the object before its last change, for a
 * new worker.
 */
export type WatchedObject = readonly [
  key: ObjectKey,
  text: string | undefined,
  failure?: ObjectFailure | undefined,
  previous?: string | undefined,
];

/**
 * Objects that stay parsed, with what policies have computed from them: those of the namespaces that are busy at a time.
 * Others are parsed again in some microseconds. With settings of 1 KB, a thousand take 2 MB in each worker.
 */
export const MAX_PARSED_OBJECTS = 1_000;

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
  /** Results of the last lookups. A lookup gives the same result until the object changes: policies remember by object. */
  readonly #parsed = new KeptEntries<Published, FoundObject>({ maxEntries: MAX_PARSED_OBJECTS });

  apply({ apiVersion, kind, isAll, objects }: WatchedChange): void {
    const id = kindId({ apiVersion, kind });
    const before = this.#kinds.get(id)?.objects ?? new Map<string, Published>();
    const after = isAll ? new Map<string, Published>() : before;
    for (const [key, text, failure, previous] of objects) {
      const content = text ?? failure;
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
    const one = this.#kinds.get(kindId(object))?.objects.get(keyId(object));
    if (one === undefined) {
      return UNKNOWN;
    }
    if (typeof one.content !== 'string') {
      return one.content;
    }
    const found = this.#parsed.get(one) ?? this.#parse(one, one.content);
    return hasAnnotations(found.object, object.annotations) ? found : UNKNOWN;
  }

  #parse(one: Published, text: string): FoundObject {
    const { previous } = one;
    const found: FoundObject = {
      state: 'found',
      object: objectOf(text),
      ...(previous === undefined ? {} : { previous: objectOf(previous) }),
    };
    this.#parsed.set(one, found);
    return found;
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

type FoundObject = Extract<LookupResult, { readonly state: 'found' }>;

interface Published {
  readonly content: string | ObjectFailure;
  readonly previous: string | undefined;
}

/** The text of the object that another one replaces; the one before, when they are the same, or when the last one could not be read. */
function previousOf(old: Published | undefined, content: Published['content']): string | undefined {
  if (old === undefined || old.content === content) {
    return old?.previous;
  }
  if (typeof old.content === 'string') {
    return old.content;
  }
  return old.content.state === 'unreadable' ? old.previous : undefined;
}

function objectOf(text: string): JsonObject {
  const object = parseJson(text);
  return isJsonObject(object) ? object : {};
}

function watchedObject(key: ObjectKey, { content, previous }: Published): WatchedObject {
  if (typeof content !== 'string') {
    return previous === undefined ? [key, undefined, content] : [key, undefined, content, previous];
  }
  return previous === undefined ? [key, content] : [key, content, undefined, previous];
}

/** Whether annotations are known: those that the object does not have are null. */
function hasAnnotations({ metadata }: JsonObject, keys: readonly string[] = []): boolean {
  const annotations = isJsonObject(metadata) ? own(metadata, 'annotations') : undefined;
  return keys.every((key) => isJsonObject(annotations) && Object.hasOwn(annotations, key));
}

interface PublishedKind {
  readonly apiVersion: string;
  readonly kind: string;
  /** By key, as text. */
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
