import type { KubernetesObject } from './kubernetes-object.ts';

/** The object without `managedFields`, which API servers keep when a write leaves them out. */
export function withoutManagedFields(object: KubernetesObject): KubernetesObject {
  const { managedFields, ...metadata } = object.metadata;
  return managedFields === undefined ? object : { ...object, metadata };
}
