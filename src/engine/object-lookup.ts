import type { JsonObject } from './json-text.ts';

/** Names one object of the cluster. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** Absent for kinds that are in no namespace. */
  readonly namespace?: string;
  readonly name: string;
}

/** The result of looking an object up. */
export type LookupResult =
  | { readonly state: 'found'; readonly object: JsonObject }
  /** The cluster has no such object. */
  | { readonly state: 'absent' }
  /** The cluster could not be read. */
  | { readonly state: 'unreadable'; readonly reason: string }
  /** This thread does not have the object, and the cluster was not read for it yet. */
  | { readonly state: 'unknown' };

/** Objects of the cluster that the engine needs for a review, besides what policies read themselves. */
export interface ObjectLookup {
  /** Never waits: an evaluation is synchronous. */
  find(object: ObjectReference): LookupResult;
}

/** For evaluation without a cluster. */
export const NO_OBJECTS: ObjectLookup = {
  find: () => ({ state: 'unreadable', reason: 'no cluster is configured' }),
};

/** Thrown where a review needs an object whose lookup is `unknown`: the evaluation ends, and starts again when it is known. */
export class UnknownObject extends Error {
  readonly object: ObjectReference;

  constructor(object: ObjectReference) {
    super(`${object.apiVersion}/${object.kind} ${JSON.stringify(object.name)} is not known yet`);
    this.object = object;
  }
}
