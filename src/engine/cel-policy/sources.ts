import { builtinKind, groupVersionOf } from '../../resources/index.ts';
import type { JsonObject } from '../json-text.ts';
import type { LabelSelector } from './label-selector.ts';

/** The kind of a policy's parameters. */
export interface ParamKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** Where parameters come from. Both throw when they cannot know: the policy then fails as its failurePolicy says. */
export interface ParameterSource {
  /** Undefined when there is no such object. `namespace` is undefined for kinds of the whole cluster. */
  get(kind: ParamKind, name: string, namespace: string | undefined): JsonObject | undefined;
  /** All objects that a selector selects, in one namespace or, for kinds of the whole cluster, everywhere. */
  list(kind: ParamKind, namespace: string | undefined, selector: LabelSelector): readonly JsonObject[];
  /** Whether objects of the kind are in namespaces. */
  isNamespaced(kind: ParamKind): boolean;
}

/** Where namespaces come from: for `namespaceObject` and for `namespaceSelector`. */
export interface NamespaceSource {
  /** Undefined when there is no such namespace. Throws when it cannot know. */
  get(name: string): JsonObject | undefined;
}

/** Whether a kind is one of Kubernetes' own that are in no namespace, for sources that cannot ask an API server. */
export function isKnownClusterKind({ apiVersion, kind }: ParamKind): boolean {
  return builtinKind(groupVersionOf(apiVersion).group, kind)?.namespaced === false;
}
