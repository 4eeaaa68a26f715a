import type { KubernetesCluster } from '../../cluster/index.ts';
import { isJsonObject, textOf } from '../../resources/index.ts';
import { CliError } from '../errors.ts';

/** Who this process is to an API server (`authentication.k8s.io/v1` SelfSubjectReview). @throws ApiError, ClusterError */
export async function usernameIn(cluster: KubernetesCluster): Promise<string> {
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const answer = await cluster.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { body });
  const review = answer.json();
  const status = isJsonObject(review) && isJsonObject(review['status']) ? review['status'] : {};
  const user = isJsonObject(status['userInfo']) ? textOf(status['userInfo']['username']) : '';
  if (user === '') {
    throw new CliError('the API server does not say who this process is: expected a name in a SelfSubjectReview');
  }
  return user;
}
