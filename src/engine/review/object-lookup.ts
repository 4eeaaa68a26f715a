import type { JsonObject } from '../values/json-text.ts';

/** Identifies an object of the cluster. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for cluster-scoped kinds. */
  readonly namespace?: string;
  readonly name: string;
  /** Annotations that must be known: those that the object does not have are null. Default: none are known. */
  readonly annotations?: readonly string[];
}

/** The result of a lookup. */
export type LookupResult =
  | {
      readonly state: 'found';
      readonly object: JsonObject;
      /** The object before its last change, unless it did not exist. */
      readonly previous?: JsonObject;
    }
  /** The cluster does not have the object. */
  | { readonly state: 'absent' }
  /** The cluster could not be read. */
  | { readonly state: 'unreadable'; readonly reason: string }
  /** This thread does not have the object, and it has not been read from the cluster yet. */
  | { readonly state: 'unknown' };

/** Looks up objects of the cluster that the engine itself needs for a review. */
export interface ObjectLookup {
  /** Synchronous, because evaluation is. */
  find(object: ObjectReference): LookupResult;
}

/** For evaluation without a cluster. */
export const NO_OBJECTS: ObjectLookup = {
  find: () => ({ state: 'unreadable', reason: 'no cluster is configured' }),
};

/** A review needs an object whose lookup is `unknown`: the evaluation is repeated when the object is known. */
export class UnknownObject extends Error {
  readonly object: ObjectReference;

  constructor(object: ObjectReference) {
    super(`${object.apiVersion}/${object.kind} ${JSON.stringify(object.name)} is not known yet`);
    this.object = object;
  }
}
