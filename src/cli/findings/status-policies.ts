// Policies whose findings come from statuses, by the names that findings have.
import { NETWORK_POLICY_FINDINGS } from '../../audit/index.ts';
import { type Cluster, isNotFound, listAll, unlessForbidden } from '../../cluster/index.ts';
import { CERTIFICATE_POLICIES, CONFIGURATION_POLICIES, type OwnKind, POLICIES } from '../../resources/index.ts';

const KINDS: readonly OwnKind[] = [POLICIES, CONFIGURATION_POLICIES, CERTIFICATE_POLICIES];

/**
 * Names of governance policies that exist, and those for NetworkPolicies.
 * @returns undefined when the user may not list all governance policies
 * @throws ApiError, ClusterError when the cluster fails
 */
export async function statusPolicies(cluster: Cluster): Promise<readonly string[] | undefined> {
  const lists = await Promise.all(KINDS.map((kind) => namesOf(cluster, kind)));
  const names = lists.flatMap((list) => list ?? []);
  return lists.includes(undefined) ? undefined : [...names, ...NETWORK_POLICY_FINDINGS];
}

async function namesOf(cluster: Cluster, kind: OwnKind): Promise<readonly string[] | undefined> {
  try {
    const list = await unlessForbidden(listAll(cluster, kind));
    return list?.items.map(({ metadata: { namespace = '', name = '' } }) =>
      [kind.kind.toLowerCase(), namespace, name].join('/'),
    );
  } catch (error) {
    if (isNotFound(error)) {
      return [];
    }
    throw error;
  }
}
