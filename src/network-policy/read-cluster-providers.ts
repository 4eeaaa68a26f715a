// The providers of a cluster at one time, with the rights of a user.
import { type Cluster, listAll, unlessForbidden } from '../cluster/index.ts';
import type { Catalogue } from '../engine/network-policy/index.ts';
import { knownKind, type NetworkPolicyProvider } from '../resources/index.ts';
import { PROVIDER_CONFIG_MAPS } from './access-rules/network-policy-rules.ts';
import { AGENT_PODS, PODS, readAgentPod } from './agent-pod.ts';
import { type ClusterProviders, clusterProviders } from './cluster-providers.ts';
import { CONFIG_MAPS } from './further-config-maps.ts';

const NODES = knownKind('v1', 'Node');

/**
 * Detects providers as the controller does. Settings whose ConfigMap the user may not read are not known. Undefined when the user
 * may not list the pods and nodes of the cluster.
 */
export async function readClusterProviders(
  cluster: Pick<Cluster, 'list'>,
  catalogue: Catalogue,
  declared: readonly NetworkPolicyProvider[] = [],
): Promise<ClusterProviders | undefined> {
  const [pods, nodes, ...configMaps] = await Promise.all([
    unlessForbidden(listAll(cluster, PODS, { fieldSelector: AGENT_PODS })),
    unlessForbidden(listAll(cluster, NODES)),
    ...PROVIDER_CONFIG_MAPS.map((name) =>
      unlessForbidden(listAll(cluster, CONFIG_MAPS, { fieldSelector: `metadata.name=${name}` })),
    ),
  ]);
  if (pods === undefined || nodes === undefined) {
    return undefined;
  }
  const objects = {
    pods: pods.items.flatMap((pod) => readAgentPod(pod) ?? []),
    nodes: nodes.items,
    configMaps: configMaps.flatMap((list) => list?.items ?? []),
    declared,
  };
  return clusterProviders(objects, catalogue, Date.now());
}
