// The namespace of the cluster, with copies of Policies and their templates.
import { ApiError, type Cluster } from '../cluster/index.ts';
import { GOVERNANCE_LABELS, knownKind, type KubernetesObject, MANAGED_BY } from '../resources/index.ts';
import { type ObjectCache, Stalled } from '../runtime/index.ts';
import { POLICY_REASONS } from './policy-reasons.ts';

export const NAMESPACES = knownKind('v1', 'Namespace');

/** Creates the namespace of the cluster; never takes over one that others created. */
export class ClusterNamespace {
  readonly #cluster: Cluster;
  readonly #namespaces: Pick<ObjectCache, 'get'>;
  readonly #name: string;
  #creating: Promise<void> | undefined;

  constructor(cluster: Cluster, namespaces: Pick<ObjectCache, 'get'>, name: string) {
    this.#cluster = cluster;
    this.#namespaces = namespaces;
    this.#name = name;
  }

  /** Whether the namespace exists, and is not being deleted. */
  get isThere(): boolean {
    const namespace = this.#namespaces.get({ name: this.#name });
    return namespace !== undefined && namespace.metadata.deletionTimestamp === undefined;
  }

  /**
   * Makes sure that the namespace exists.
   * @throws Stalled if it belongs to others; ApiError, ClusterError
   */
  async ensure(signal: AbortSignal): Promise<void> {
    const found = this.#namespaces.get({ name: this.#name });
    if (found === undefined) {
      this.#creating ??= this.#create(signal).finally(() => {
        this.#creating = undefined;
      });
      await this.#creating;
    } else {
      this.#assertOurs(found);
    }
  }

  async #create(signal: AbortSignal): Promise<void> {
    const labels = { ...MANAGED_BY, [GOVERNANCE_LABELS.clusterName]: this.#name };
    try {
      const metadata = { name: this.#name, labels };
      await this.#cluster.create(NAMESPACES, { apiVersion: 'v1', kind: 'Namespace', metadata }, { signal });
    } catch (error) {
      if (!(error instanceof ApiError) || error.reason !== 'AlreadyExists') {
        throw error;
      }
      this.#assertOurs(await this.#cluster.get(NAMESPACES, { name: this.#name }, { signal }));
    }
  }

  #assertOurs({ metadata }: KubernetesObject): void {
    const isOurs = Object.entries(MANAGED_BY).every(([key, value]) => metadata.labels?.[key] === value);
    if (!isOurs) {
      throw new Stalled(
        POLICY_REASONS.clusterNamespaceNotOurs,
        `Namespace ${this.#name} was not created by Portcullis, and whoever may write Policies in it would use the rights of the governance account. Choose another name with --cluster-name, or add the label app.kubernetes.io/managed-by=portcullis if only administrators write in it.`,
      );
    }
  }
}
