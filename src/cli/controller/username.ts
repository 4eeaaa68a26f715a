import type { KubernetesCluster } from '../../cluster/index.ts';
import { SELF_REVIEW } from '../../lifecycle/index.ts';
import { isJsonObject, textOf } from '../../resources/index.ts';
import type { Logger } from '../../log/index.ts';
import { CliError } from '../errors.ts';
import { untilAnswered } from './until-answered.ts';

const API_VERSION = `${SELF_REVIEW.group}/${SELF_REVIEW.version}`;
const PATH = `/apis/${API_VERSION}/${SELF_REVIEW.resource}`;

/**
 * The username of this process (`authentication.k8s.io/v1` SelfSubjectReview). Waits until the API server answers; empty when
 * the signal is aborted.
 * @throws ApiError when the server refuses; CliError when the answer has no name
 */
export async function usernameIn(cluster: KubernetesCluster, log: Logger, signal: AbortSignal): Promise<string> {
  return (await untilAnswered(() => reviewedUsername(cluster, signal), log, signal)) ?? '';
}

/** As {@link usernameIn}, with one attempt. */
export async function reviewedUsername(
  cluster: Pick<KubernetesCluster, 'request'>,
  signal: AbortSignal,
): Promise<string> {
  const body = { apiVersion: API_VERSION, kind: SELF_REVIEW.kind };
  const review = (await cluster.request('POST', PATH, { body, signal })).json();
  const status = isJsonObject(review) && isJsonObject(review['status']) ? review['status'] : {};
  const user = isJsonObject(status['userInfo']) ? textOf(status['userInfo']['username']) : '';
  if (user === '') {
    throw new CliError('the API server did not return a username: expected one in a SelfSubjectReview');
  }
  return user;
}
