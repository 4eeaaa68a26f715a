import { type Cluster, unlessGone } from '../../cluster/index.ts';
import { policyServerSecrets } from '../certificates/certificate-names.ts';
import { isOurs, SECRETS } from '../certificates/secret.ts';

/**
 * Removes the certificates of a removed PolicyServer, except those that another tool manages. @throws ApiError,
 * ClusterError
 */
export async function removeLeafSecrets(
  cluster: Cluster,
  namespace: string,
  policyServer: string,
  signal: AbortSignal,
): Promise<void> {
  for (const name of Object.values(policyServerSecrets(policyServer))) {
    const key = { namespace, name };
    const secret = await unlessGone(cluster.get(SECRETS, key, { signal }));
    if (secret !== undefined && isOurs(secret)) {
      await unlessGone(cluster.delete(SECRETS, key, { signal }));
    }
  }
}
