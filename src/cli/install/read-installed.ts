// Reads what an installation left in a cluster.
import { ApiError, type KubernetesCluster, listAll, unlessGone } from '../../cluster/index.ts';
import {
  DEFAULT_POLICY_SERVER,
  keyOf,
  type KubernetesObject,
  POLICY_SERVERS,
  productKind,
  textOf,
  valueAt,
} from '../../resources/index.ts';
import {
  AUDITOR,
  CLUSTER_BINDINGS,
  CONTROLLER,
  DEPLOYMENTS,
  INSTALL_PARTS,
  type InstallContext,
} from '../../installation/index.ts';
import { GOVERNANCE_BINDINGS } from '../../installation/objects/index.ts';
import type { InstalledObjects } from './kept-values.ts';

/**
 * What is in the cluster of an installation; undefined without a controller, and where reading is forbidden: the check of the
 * rights to install, which include these, names all that are missing.
 * @throws ApiError, ClusterError
 */
export async function readInstalled(
  cluster: KubernetesCluster,
  context: InstallContext,
): Promise<InstalledObjects | undefined> {
  try {
    return await readObjects(cluster, context);
  } catch (error) {
    if (error instanceof ApiError && error.code === 403) {
      return undefined;
    }
    throw error;
  }
}

async function readObjects(cluster: KubernetesCluster, context: InstallContext): Promise<InstalledObjects | undefined> {
  const { namespace } = context;
  const deployment = await unlessGone(cluster.get(DEPLOYMENTS, { namespace, name: CONTROLLER }));
  if (deployment === undefined) {
    return undefined;
  }
  const auditor = await unlessGone(cluster.get(DEPLOYMENTS, { namespace, name: AUDITOR }));
  const policyServer = await unlessGone(cluster.get(POLICY_SERVERS, { name: DEFAULT_POLICY_SERVER }));
  const bindings = await listAll(cluster, CLUSTER_BINDINGS, { labelSelector: GOVERNANCE_BINDINGS });
  return {
    deployment,
    ...(auditor === undefined ? {} : { auditor }),
    ...(policyServer === undefined ? {} : { policyServer }),
    governanceRoles: bindings.items.map((binding) => textOf(valueAt(binding, 'roleRef', 'name'))).toSorted(),
    parts: await readParts(cluster, context),
  };
}

/** The parts before the Deployment that a value switches, and whether they are there. */
async function readParts(cluster: KubernetesCluster, context: InstallContext): Promise<Record<string, boolean>> {
  const found: Record<string, boolean> = {};
  for (const { when, is, each, objects } of INSTALL_PARTS) {
    const [first] = when === undefined || is !== undefined || each !== undefined ? [] : objects(context);
    if (when !== undefined && first !== undefined && first.kind !== 'PolicyServer') {
      found[when] = await exists(cluster, first);
    }
  }
  return found;
}

async function exists(cluster: KubernetesCluster, object: KubernetesObject): Promise<boolean> {
  const { apiVersion, kind } = object;
  const type = productKind(apiVersion, kind) ?? (await cluster.discovery.find(apiVersion, kind));
  return type !== undefined && (await unlessGone(cluster.get(type, keyOf(object)))) !== undefined;
}
