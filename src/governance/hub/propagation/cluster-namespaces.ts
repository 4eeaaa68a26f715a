// The namespaces of clusters, with copies of Policies.
import { ApiError, type Cluster } from '../../../cluster/index.ts';
import { GOVERNANCE_LABELS, knownKind, type KubernetesObject, MANAGED_BY } from '../../../resources/index.ts';
import { type ObjectCache, Stalled } from '../../../runtime/index.ts';
import { POLICY_REASONS } from '../../policy/policy-reasons.ts';
import type { Target } from '../../targets/targets.ts';

const NAMESPACES = knownKind('v1', 'Namespace');

/** Creates the namespaces of clusters; never takes over one that others created. */
export class ClusterNamespaces {
  readonly #cluster: Cluster;
  readonly #namespaces: Pick<ObjectCache, 'get'>;
  readonly #creating = new Map<string, Promise<void>>();

  constructor(cluster: Cluster, namespaces: Pick<ObjectCache, 'get'>) {
    this.#cluster = cluster;
    this.#namespaces = namespaces;
  }

  /**
   * Makes sure that the namespace of a cluster exists.
   * @throws Stalled if it belongs to others; ApiError, ClusterError
   */
  async ensure(target: Target, signal: AbortSignal): Promise<void> {
    const { namespace } = target;
    const found = this.#namespaces.get({ name: namespace });
    if (found !== undefined) {
      assertOurs(found);
      return;
    }
    const creating =
      this.#creating.get(namespace) ??
      this.#create(target, signal).finally(() => {
        this.#creating.delete(namespace);
      });
    this.#creating.set(namespace, creating);
    await creating;
  }

  async #create({ name, namespace }: Target, signal: AbortSignal): Promise<void> {
    const metadata = { name: namespace, labels: { ...MANAGED_BY, [GOVERNANCE_LABELS.clusterName]: name } };
    try {
      await this.#cluster.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata }, { signal });
    } catch (error) {
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') {
        throw error;
      }
      assertOurs(await this.#cluster.get(NAMESPACES, { name: namespace }, { signal }));
    }
  }
}

function assertOurs({ metadata: { name = '', labels } }: KubernetesObject): void {
  if (!Object.entries(MANAGED_BY).every(([key, value]) => labels?.[key] === value)) {
    throw new Stalled(
      POLICY_REASONS.clusterNamespaceNotOurs,
      `Namespace ${name} was not created by Portcullis, and whoever may write Policies in it would use the rights of the governance account. Choose another name with --cluster-name, or add the label app.kubernetes.io/managed-by=portcullis if only administrators write in it.`,
    );
  }
}
