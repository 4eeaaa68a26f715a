import type { ApiResource } from '../cluster/index.ts';
import type { JsonObject } from '../engine/index.ts';
import { apiVersionOf, type KubernetesObject } from '../resources/index.ts';
import { asJson } from '../values/index.ts';

/**
 * An existing object as a request to create it would have it: without what only API servers write, so that no verdict depends on
 * that. A status is left out where it is a subresource; elsewhere requests contain it.
 */
export function createdObject(object: KubernetesObject, type: ApiResource): JsonObject {
  const { managedFields: _managed, resourceVersion: _version, generation: _generation, ...metadata } = object.metadata;
  const { status, ...content } = asJson(object);
  return {
    ...content,
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: asJson(metadata),
    ...(status === undefined || type.subresources.includes('status') ? {} : { status }),
  };
}
