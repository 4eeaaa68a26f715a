import { builtinKind, groupVersionOf } from '../../resources/index.ts';
import type { JsonObject } from '../values/json-text.ts';
import type { Selector } from '../../resources/index.ts';

/** The kind of a policy's parameters. */
export interface ParamKind {
  readonly apiVersion: string;
  readonly kind: string;
}

/** The kind that `namespaceObject` and `namespaceSelector` read. */
export const NAMESPACE_KIND: ParamKind = { apiVersion: 'v1', kind: 'Namespace' };

/** Source of parameters. Both methods throw on failure, for which the policy's failurePolicy applies. */
export interface ParamSource {
  /** Undefined when the object does not exist. `namespace` is undefined for cluster-scoped kinds. */
  get(kind: ParamKind, name: string, namespace: string | undefined): JsonObject | undefined;
  /** All selected objects, in one namespace or, for cluster-scoped kinds, in the cluster. */
  list(kind: ParamKind, namespace: string | undefined, selector: Selector): readonly JsonObject[];
  /** Whether there is a resource of the kind. */
  isServed(kind: ParamKind): boolean;
  /** Whether the kind is namespaced. */
  isNamespaced(kind: ParamKind): boolean;
}

/** Source of namespaces for `namespaceObject` and `namespaceSelector`. */
export interface NamespaceSource {
  /** Undefined when the namespace does not exist. Throws on failure. */
  get(name: string): JsonObject | undefined;
}

/** Whether a kind is one of Kubernetes' own, in any version. */
export function isKnownKind({ apiVersion, kind }: ParamKind): boolean {
  return builtinKind(groupVersionOf(apiVersion).group, kind) !== undefined;
}

/** Whether a kind is one of Kubernetes' cluster-scoped kinds, for sources without an API server. */
export function isKnownClusterKind({ apiVersion, kind }: ParamKind): boolean {
  return builtinKind(groupVersionOf(apiVersion).group, kind)?.namespaced === false;
}
