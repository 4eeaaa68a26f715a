import type { KubernetesObject } from '../resources/index.ts';

/** The annotation in which client-side apply keeps a copy of the whole object. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * The object without `managedFields` and the copy that client-side apply keeps: up to half of an object, and only
 * writers need them. Returns the same object if it has neither.
 */
export function withoutBookkeeping<T extends KubernetesObject>(object: T): T {
  const { managedFields, annotations, ...metadata } = object.metadata;
  const isApplied = annotations !== undefined && Object.hasOwn(annotations, LAST_APPLIED);
  if (managedFields === undefined && !isApplied) {
    return object;
  }
  if (annotations === undefined) {
    return { ...object, metadata };
  }
  const { [LAST_APPLIED]: _, ...kept } = annotations;
  return { ...object, metadata: { ...metadata, annotations: kept } };
}
