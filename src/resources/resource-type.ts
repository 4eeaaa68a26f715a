import type { KubernetesObject } from './kubernetes-object.ts';

/**
 * A kind in one version of its group, and the resource name in its URLs. `T` is the type of its objects, for the
 * compiler only.
 */
export interface ResourceType<T extends KubernetesObject = KubernetesObject> {
  /** Empty for the core group (`v1`). */
  readonly group: string;
  readonly version: string;
  /** Plural, lower case: `pods`. */
  readonly resource: string;
  /** `Pod` */
  readonly kind: string;
  readonly namespaced: boolean;
  /** Never set. */
  readonly _object?: T;
}

/** A resource in one version, as in AdmissionReviews. */
export type GroupVersionResource = Pick<ResourceType, 'group' | 'version' | 'resource'>;

/** A kind in one version, as in AdmissionReviews. */
export type GroupVersionKind = Pick<ResourceType, 'group' | 'version' | 'kind'>;

/** Identifies an object of a type. */
export interface ObjectKey {
  /** Absent for cluster-scoped objects. */
  readonly namespace?: string;
  readonly name: string;
}

/** `v1`, `apps/v1`: the `apiVersion` of objects of the type. */
export function apiVersionOf(type: Pick<ResourceType, 'group' | 'version'>): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

/** The group and version of an `apiVersion`. */
export function groupVersionOf(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf('/');
  return slash === -1
    ? { group: '', version: apiVersion }
    : { group: apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}

/** `pods`, `deployments.apps`: the name of a type in messages. */
export function groupResourceOf(type: Pick<ResourceType, 'group' | 'resource'>): string {
  return type.group === '' ? type.resource : `${type.resource}.${type.group}`;
}

/** `namespace/name`, or `name` for cluster-scoped objects: unique within a type. */
export function keyText({ namespace, name }: ObjectKey): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** The key of a named object. */
export function keyOf(object: KubernetesObject): ObjectKey {
  const { namespace, name = '' } = object.metadata;
  return namespace === undefined ? { name } : { namespace, name };
}
