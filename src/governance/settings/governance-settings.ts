// Settings of governance, made by administrators.

/**
 * `standalone`: Policies without a placement apply to this cluster. `hub`: a Policy applies nowhere unless it is placed.
 */
export type GovernanceMode = 'standalone' | 'hub';

/** The namespaces whose Policies count. */
export interface GovernedNamespaces {
  /** Undefined: all but {@link exemptNamespaces}. */
  readonly namespaces: readonly string[] | undefined;
  /** Namespaces whose Policies never count, unless they are named. */
  readonly exemptNamespaces: readonly string[];
}

export interface GovernanceSettings extends GovernedNamespaces {
  readonly mode: GovernanceMode;
  /** The name of this cluster, and of the namespace with copies of Policies and their templates. */
  readonly clusterName: string;
}

/** The name that Open Cluster Management gives a hub that manages itself. */
const DEFAULT_CLUSTER_NAME = 'local-cluster';

export const DEFAULT_GOVERNANCE_SETTINGS: GovernanceSettings = {
  mode: 'standalone',
  clusterName: DEFAULT_CLUSTER_NAME,
  namespaces: undefined,
  exemptNamespaces: ['kube-system', 'kube-public', 'kube-node-lease'],
};

/** Whether Policies of a namespace count. */
export function isGoverned(namespace: string, { namespaces, exemptNamespaces }: GovernedNamespaces): boolean {
  return namespaces === undefined ? !exemptNamespaces.includes(namespace) : namespaces.includes(namespace);
}
