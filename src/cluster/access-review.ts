import { isJsonObject, type JsonObject, type KubernetesObject, type ResourceType } from '../resources/index.ts';
import type { Cluster, RequestOptions } from './cluster.ts';

export const SUBJECT_ACCESS_REVIEWS: ResourceType<KubernetesObject & { readonly status?: unknown }> = {
  group: 'authorization.k8s.io',
  version: 'v1',
  resource: 'subjectaccessreviews',
  kind: 'SubjectAccessReview',
  namespaced: false,
};

/**
 * Reviews what a user may do. `spec` is that of a SubjectAccessReview.
 * @returns its status; without one, access is denied
 * @throws ApiError, ClusterError
 */
export async function reviewAccess(
  cluster: Pick<Cluster, 'create'>,
  spec: JsonObject,
  options?: RequestOptions,
): Promise<JsonObject> {
  const { group, version, kind } = SUBJECT_ACCESS_REVIEWS;
  const review = { apiVersion: `${group}/${version}`, kind, metadata: {}, spec };
  const { status } = await cluster.create(SUBJECT_ACCESS_REVIEWS, review, options);
  return isJsonObject(status) ? status : { allowed: false };
}
