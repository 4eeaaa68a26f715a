// The providers of a cluster at one time, with the rights of a user.
import { type Cluster, listAll, unlessForbidden } from '../cluster/index.ts';
import type { Catalogue } from '../engine/network-policy/index.ts';
import type { KubernetesObject, NetworkPolicyProvider } from '../resources/index.ts';
import { PROVIDER_CONFIG_MAPS } from './access-rules/network-policy-rules.ts';
import { AGENT_PODS, PODS, readAgentPod } from './agent-pod.ts';
import { type ClusterProviders, clusterProviders } from './cluster-providers.ts';
import { CONFIG_MAPS } from './further-config-maps.ts';

/**
 * Detects providers as the controller does. Settings whose ConfigMap the user may not read are not known. Undefined when the user
 * may not list the pods of the cluster.
 * @param nodes all nodes of the cluster
 */
export async function readClusterProviders(
  cluster: Pick<Cluster, 'list'>,
  catalogue: Catalogue,
  nodes: readonly KubernetesObject[],
  declared: readonly NetworkPolicyProvider[],
): Promise<ClusterProviders | undefined> {
  const [pods, ...configMaps] = await Promise.all([
    unlessForbidden(listAll(cluster, PODS, { fieldSelector: AGENT_PODS })),
    ...PROVIDER_CONFIG_MAPS.map((name) =>
      unlessForbidden(listAll(cluster, CONFIG_MAPS, { fieldSelector: `metadata.name=${name}` })),
    ),
  ]);
  if (pods === undefined) {
    return undefined;
  }
  const objects = {
    pods: pods.items.flatMap((pod) => readAgentPod(pod) ?? []),
    nodes,
    configMaps: configMaps.flatMap((list) => list?.items ?? []),
    declared,
  };
  return clusterProviders(objects, catalogue, Date.now());
}
