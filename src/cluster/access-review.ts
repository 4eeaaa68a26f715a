import { apiVersionOf, isJsonObject, type JsonObject, knownKind, type KubernetesObject } from '../resources/index.ts';
import type { Cluster, RequestOptions } from './cluster.ts';

export const SUBJECT_ACCESS_REVIEWS = knownKind<KubernetesObject & { readonly status?: unknown }>(
  'authorization.k8s.io/v1',
  'SubjectAccessReview',
);

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
  const { kind } = SUBJECT_ACCESS_REVIEWS;
  const review = { apiVersion: apiVersionOf(SUBJECT_ACCESS_REVIEWS), kind, metadata: {}, spec };
  const { status } = await cluster.create(SUBJECT_ACCESS_REVIEWS, review, options);
  return isJsonObject(status) ? status : { allowed: false };
}
