import type { JsonObject } from '../../../values/index.ts';

/** An object, or the objects of a kind, that a template looked up. */
export interface TemplateLookup {
  readonly apiVersion: string;
  readonly kind: string;
  /** Empty for cluster-scoped kinds, and for lists of all namespaces. */
  readonly namespace: string;
  /** Empty for a list. */
  readonly name: string;
  /** The label selector of a list, as of `kubectl -l`; empty for all objects, and for single objects. */
  readonly selector: string;
}

/** Why there is no answer. */
export type NoAnswer =
  /** It has not been read from the cluster yet: render again when it has been. */
  | { readonly state: 'unknown' }
  /** The cluster does not serve the kind. */
  | { readonly state: 'unserved' }
  /** The cluster refuses to be read, or cannot be reached. */
  | { readonly state: 'unreadable'; readonly reason: string };

export type ObjectAnswer =
  | { readonly state: 'found'; readonly object: JsonObject }
  | { readonly state: 'absent' }
  | NoAnswer;

export type ListAnswer = { readonly state: 'found'; readonly objects: readonly JsonObject[] } | NoAnswer;

/** The objects of the cluster that templates may look up. Synchronous, because templates are. */
export interface TemplateObjects {
  get(apiVersion: string, kind: string, namespace: string, name: string): ObjectAnswer;
  /** @param selector a valid label selector, as of `kubectl -l`; empty for all objects */
  list(apiVersion: string, kind: string, namespace: string, selector: string): ListAnswer;
}

/**
 * Whether a template may read an object, or with an empty name the kind's objects; otherwise the reason, such as
 * `lookups are restricted to namespace a`.
 */
export type ReadGate = (lookup: TemplateLookup) => true | string;

/** For a rendering that looks up nothing. */
export const NO_TEMPLATE_OBJECTS: TemplateObjects = {
  get: () => ({ state: 'unreadable', reason: 'no cluster is configured' }),
  list: () => ({ state: 'unreadable', reason: 'no cluster is configured' }),
};
