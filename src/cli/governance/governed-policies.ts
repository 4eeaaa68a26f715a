import { clusterPolicies, type PolicyGraph } from '../../governance/index.ts';
import { POLICIES } from '../../resources/index.ts';
import type { Connected } from '../cluster/cluster-flags.ts';
import { CliError } from '../errors.ts';

/** The Policies that the user may read. @throws CliError when the cluster has no Policies; ApiError, ClusterError */
export async function governedPolicies(
  { cluster, namespace }: Pick<Connected, 'cluster' | 'namespace'>,
  clusterName: string,
): Promise<PolicyGraph> {
  const policies = await clusterPolicies(cluster, clusterName, namespace);
  if (policies === undefined) {
    const hint = 'Is governance installed there? With -f, policies are read from files.';
    throw new CliError(`the cluster has no kind Policy of ${POLICIES.group}`, { hint });
  }
  return policies;
}
