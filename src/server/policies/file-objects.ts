import type { LookupResult, ObjectReference } from '../../engine/index.ts';
import type { FindResult, WatchedChange } from '../../evaluation/index.ts';

/** The objects of manifests, in the place of a cluster. */
export interface ObjectFinder {
  find(reference: ObjectReference): Exclude<LookupResult, { readonly state: 'unknown' }>;
}

/** Publishes the objects that policies look up, and their changes in the files. */
export class FileObjects {
  readonly #publish: (change: WatchedChange) => void;
  #objects: ObjectFinder | undefined;
  /** By API version, kind, namespace and name, with all annotations that policies need. */
  readonly #published = new Map<string, ObjectReference>();

  constructor(publish: (change: WatchedChange) => void) {
    this.#publish = publish;
  }

  /** Publishes the changes of objects that were looked up. @param objects undefined: there are no manifests */
  replace(objects: ObjectFinder | undefined): void {
    this.#objects = objects;
    for (const [id, reference] of this.#published) {
      if (this.find(reference).state !== 'published') {
        this.#published.delete(id);
        this.#publish(changeOf(reference, undefined));
      }
    }
  }

  find(reference: ObjectReference): FindResult {
    const { apiVersion, kind, namespace, name } = reference;
    const id = JSON.stringify([apiVersion, kind, namespace ?? '', name]);
    const annotations = [
      ...new Set([...(this.#published.get(id)?.annotations ?? []), ...(reference.annotations ?? [])]),
    ];
    const wanted = annotations.length === 0 ? reference : { ...reference, annotations };
    const found = this.#objects?.find(wanted) ?? NO_OBJECTS;
    if (found.state !== 'found') {
      return found;
    }
    this.#published.set(id, wanted);
    this.#publish(changeOf(wanted, JSON.stringify(found.object)));
    return { state: 'published' };
  }
}

const NO_OBJECTS = { state: 'unreadable', reason: 'a policies file has no cluster' } as const;

function changeOf({ apiVersion, kind, namespace, name }: ObjectReference, text: string | undefined): WatchedChange {
  const key = { name, ...(namespace === undefined ? {} : { namespace }) };
  return { apiVersion, kind, isAll: false, objects: [[key, text]] };
}
