import type { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError } from '../../cluster/index.ts';
import { type JsonObject, keyOf, type KubernetesObject } from '../../resources/index.ts';

/** The field manager of objects that `start` applies. */
const FIELD_MANAGER = 'portcullis-start';

/**
 * Applies an object, of a kind that the cluster serves.
 * @throws ApiError
 */
export async function applyObject(cluster: EmbeddedCluster, object: KubernetesObject): Promise<void> {
  const type = await cluster.admin.discovery.find(object.apiVersion, object.kind);
  if (type === undefined) {
    throw ApiError.badRequest(`the cluster has no kind ${object.kind} in ${object.apiVersion}`);
  }
  const body = object as JsonObject;
  await cluster.admin.patch(type, keyOf(object), { type: 'apply', body, force: true }, { fieldManager: FIELD_MANAGER });
}
