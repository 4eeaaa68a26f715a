import { type KubernetesObject, LAST_APPLIED_ANNOTATION } from '../resources/index.ts';

/**
 * The object without `managedFields` and the copy that client-side apply keeps: up to half of an object, and only
 * writers need them. Returns the same object if it has neither.
 */
export function withoutBookkeeping<T extends KubernetesObject>(object: T): T {
  const { managedFields, annotations, ...metadata } = object.metadata;
  const isApplied = annotations !== undefined && Object.hasOwn(annotations, LAST_APPLIED_ANNOTATION);
  if (managedFields === undefined && !isApplied) {
    return object;
  }
  if (annotations === undefined) {
    return { ...object, metadata };
  }
  const { [LAST_APPLIED_ANNOTATION]: _, ...kept } = annotations;
  return { ...object, metadata: { ...metadata, annotations: kept } };
}
