// The state of a cluster for the doctor's checks, read once.
import {
  ApiError,
  isForbidden,
  type KubernetesCluster,
  listAll,
  listReadable,
  type ServerVersion,
} from '../../cluster/index.ts';
import { LEASES } from '../../runtime/index.ts';
import {
  type AdmissionPolicyObject,
  CONFIGURATION_POLICIES,
  type ConfigurationPolicy,
  type KubernetesObject,
  NETWORK_POLICY_PROVIDERS,
  type NetworkPolicyProvider,
  POLICIES as GOVERNANCE_POLICIES,
  POLICY_KINDS,
  POLICY_SERVER_REPLICAS,
  POLICY_SERVERS,
  type PolicyServerObject,
  type PolicyServerReplica,
  type ResourceType,
} from '../../resources/index.ts';
import { accountOf, deniedRights, type PolicyRight, reviewedObjects } from '../rights/account-rights.ts';
import {
  ACCESS_GUARDS,
  CLUSTER_BINDINGS,
  CLUSTER_ROLES,
  CRDS,
  DEPLOYMENTS,
  NAMESPACES,
  ROLE_BINDINGS,
  ROLES,
  SECRETS,
  SERVICES,
  WEBHOOK_CONFIGURATIONS,
} from '../kinds.ts';

/** A kind whose objects could not be listed. */
interface Unread {
  readonly what: string;
  readonly why: string;
  readonly isForbidden?: true;
  /** The namespace whose objects could be listed. */
  readonly within?: string;
}

export interface Snapshot {
  /** The namespace of Portcullis. */
  readonly namespace: string;
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly version: ServerVersion;
  readonly definitions: readonly KubernetesObject[];
  readonly namespaces: readonly KubernetesObject[];
  /** Of all namespaces. */
  readonly deployments: readonly KubernetesObject[];
  readonly leases: readonly KubernetesObject[];
  /** Of all namespaces: webhooks may name any. */
  readonly services: readonly KubernetesObject[];
  readonly secrets: readonly KubernetesObject[];
  readonly roles: readonly KubernetesObject[];
  readonly bindings: readonly KubernetesObject[];
  /** ValidatingAdmissionPolicies and their bindings. */
  readonly guards: readonly KubernetesObject[];
  readonly configurations: readonly KubernetesObject[];
  readonly policyServers: readonly PolicyServerObject[];
  readonly replicas: readonly PolicyServerReplica[];
  readonly policies: readonly AdmissionPolicyObject[];
  readonly governance: GovernanceState;
  readonly networkProviders: readonly NetworkPolicyProvider[];
  readonly unread: readonly Unread[];
}

/** Governance policies of all namespaces. */
interface GovernanceState {
  readonly policies: readonly KubernetesObject[];
  readonly templates: readonly ConfigurationPolicy[];
  /** What the governance account lacks for them. */
  readonly denied: readonly PolicyRight[];
}

/** Whether objects of a kind could not be listed: missing ones may exist then. */
export function isUnread({ unread }: Pick<Snapshot, 'unread'>, { resource }: Pick<ResourceType, 'resource'>): boolean {
  return unread.some(({ what }) => what === resource);
}

/**
 * @param namespace of Portcullis
 * @param own the namespace whose policies are read when the user may not list those of all namespaces
 * @throws ClusterError when the cluster cannot be reached
 */
export async function takeSnapshot(cluster: KubernetesCluster, namespace: string, own: string): Promise<Snapshot> {
  const unread: Unread[] = [];
  const read = async (types: readonly ResourceType[], within?: string): Promise<readonly KubernetesObject[]> =>
    (await Promise.all(types.map((type) => listed(cluster, type, within, unread)))).flat();
  /** Objects of all namespaces, or of the product's namespace when listing all is forbidden. */
  const readAnywhere = async (type: ResourceType): Promise<readonly KubernetesObject[]> => {
    const all = await read([type]);
    return isUnread({ unread }, type) ? await read([type], namespace) : all;
  };
  /** Policies of all namespaces, or of the user's own when listing all is forbidden. */
  const readPolicies = async (types: readonly ResourceType[]): Promise<readonly KubernetesObject[]> =>
    (await Promise.all(types.map((type) => listedPolicies(cluster, type, own, unread)))).flat();
  const [version, definitions, namespaces, deployments, leases, services, secrets, roles, bindings] = await Promise.all(
    [
      cluster.version(),
      read([CRDS]),
      read([NAMESPACES]),
      readAnywhere(DEPLOYMENTS),
      read([LEASES], namespace),
      readAnywhere(SERVICES),
      read([SECRETS], namespace),
      Promise.all([read([CLUSTER_ROLES]), read([ROLES], namespace)]),
      Promise.all([read([CLUSTER_BINDINGS]), read([ROLE_BINDINGS], namespace)]),
    ],
  );
  const [guards, configurations, policyServers, replicas, all] = await Promise.all([
    read(ACCESS_GUARDS),
    read(WEBHOOK_CONFIGURATIONS),
    read([POLICY_SERVERS]),
    read([POLICY_SERVER_REPLICAS], namespace),
    readPolicies(POLICY_KINDS),
  ]);
  return {
    namespace,
    now: Date.now(),
    version,
    definitions,
    namespaces,
    deployments,
    leases,
    services,
    secrets,
    roles: roles.flat(),
    bindings: bindings.flat(),
    guards,
    configurations,
    policyServers: policyServers as readonly PolicyServerObject[],
    replicas: replicas as readonly PolicyServerReplica[],
    // Validated by the schemas of the kinds.
    policies: all as readonly AdmissionPolicyObject[],
    governance: await readGovernance(cluster, namespace, readPolicies, unread),
    // Validated by the schema of the kind.
    networkProviders: (await read([NETWORK_POLICY_PROVIDERS])) as readonly NetworkPolicyProvider[],
    unread,
  };
}

async function readGovernance(
  cluster: KubernetesCluster,
  namespace: string,
  read: (types: readonly ResourceType[]) => Promise<readonly KubernetesObject[]>,
  unread: Unread[],
): Promise<GovernanceState> {
  const policies = await read([GOVERNANCE_POLICIES]);
  // Validated by the schema of the kind.
  const templates = (await read([CONFIGURATION_POLICIES])) as readonly ConfigurationPolicy[];
  try {
    return {
      policies,
      templates,
      denied: await deniedRights(cluster, accountOf(namespace), reviewedObjects(policies, templates)),
    };
  } catch (error) {
    if (!(error instanceof ApiError)) {
      throw error;
    }
    unread.push({ what: 'rights of the governance account', why: error.message });
    return { policies, templates, denied: [] };
  }
}

async function listedPolicies(
  cluster: KubernetesCluster,
  type: ResourceType,
  own: string,
  unread: Unread[],
): Promise<readonly KubernetesObject[]> {
  try {
    const { items, scope } = await listReadable(cluster, type, own);
    if (scope !== 'all') {
      const within = scope === 'namespace' ? { within: own } : {};
      unread.push({ what: type.resource, why: 'forbidden', isForbidden: true, ...within });
    }
    return items;
  } catch (error) {
    noteUnread(type, error, unread);
    return [];
  }
}

/** Empty when the cluster does not serve the kind, which another check reports. */
async function listed(
  cluster: KubernetesCluster,
  type: ResourceType,
  namespace: string | undefined,
  unread: Unread[],
): Promise<readonly KubernetesObject[]> {
  try {
    return (await listAll(cluster, type, namespace === undefined ? {} : { namespace })).items;
  } catch (error) {
    noteUnread(type, error, unread);
    return [];
  }
}

/** @throws ClusterError when the cluster cannot be reached */
function noteUnread(type: ResourceType, error: unknown, unread: Unread[]): void {
  if (!(error instanceof ApiError)) {
    throw error;
  }
  if (error.code !== 404 && !isUnread({ unread }, type)) {
    unread.push({ what: type.resource, why: error.message, ...(isForbidden(error) ? { isForbidden: true } : {}) });
  }
}
