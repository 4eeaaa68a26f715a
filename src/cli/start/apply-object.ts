import type { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type ApiResource, unlessGone } from '../../cluster/index.ts';
import { type JsonObject, keyOf, type KubernetesObject } from '../../resources/index.ts';

/** The field manager of objects that `start` applies. */
const FIELD_MANAGER = 'portcullis-start';

/**
 * Applies an object, of a kind that the cluster serves.
 * @throws ApiError
 */
export async function applyObject(cluster: EmbeddedCluster, object: KubernetesObject): Promise<void> {
  const body = object as JsonObject;
  const type = await kindOf(cluster, object);
  await cluster.admin.patch(type, keyOf(object), { type: 'apply', body, force: true }, { fieldManager: FIELD_MANAGER });
}

/**
 * Deletes an object, if there is one.
 * @throws ApiError
 */
export async function removeObject(cluster: EmbeddedCluster, object: KubernetesObject): Promise<void> {
  await unlessGone(cluster.admin.delete(await kindOf(cluster, object), keyOf(object)));
}

async function kindOf(cluster: EmbeddedCluster, { apiVersion, kind }: KubernetesObject): Promise<ApiResource> {
  const type = await cluster.admin.discovery.find(apiVersion, kind);
  if (type === undefined) {
    throw ApiError.badRequest(`the cluster has no kind ${kind} in ${apiVersion}`);
  }
  return type;
}
