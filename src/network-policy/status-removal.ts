import type { Logger } from 'pino';
import { ApiError, type Cluster, listAll, unlessGone } from '../cluster/index.ts';
import {
  apiVersionOf,
  keyOf,
  type KubernetesObject,
  MANAGED_BY_SELECTOR,
  NETWORK_POLICY_PROVIDERS,
  NETWORK_POLICY_STATUS_MANAGER,
  NETWORK_POLICY_STATUSES,
  type ResourceType,
} from '../resources/index.ts';
import { aborted, type Runnable } from '../runtime/index.ts';
import { errorText } from '../values/index.ts';
import { NETWORK_POLICIES } from './network-policies.ts';
import { PolicyProjection } from './policy-projection.ts';

export interface StatusRemovalOptions {
  readonly cluster: Cluster;
  readonly log: Logger;
}

/** Removes what the controller wrote, once, when it is switched off. The entries of other writers stay. */
export class StatusRemoval implements Runnable {
  readonly name = 'network policy status removal';
  readonly #options: StatusRemovalOptions;

  constructor(options: StatusRemovalOptions) {
    this.#options = options;
  }

  async start(signal: AbortSignal): Promise<void> {
    try {
      await this.remove(signal);
    } catch (error) {
      if (!(error instanceof ApiError && (error.code === 403 || error.code === 404))) {
        this.#options.log.warn({ error: errorText(error) }, 'statuses of NetworkPolicies could not be removed');
      }
    }
    await aborted(signal);
  }

  /** @throws ApiError, ClusterError */
  async remove(signal: AbortSignal): Promise<void> {
    const { cluster } = this.#options;
    for (const type of [NETWORK_POLICY_STATUSES, NETWORK_POLICY_PROVIDERS]) {
      const { items } = await listAll<KubernetesObject>(cluster, type, { labelSelector: MANAGED_BY_SELECTOR, signal });
      for (const object of items) {
        await this.#release(type, object, signal);
      }
    }
    await this.#clearPolicies(signal);
  }

  /** What the NetworkPolicies themselves say of it. */
  async #clearPolicies(signal: AbortSignal): Promise<void> {
    const { cluster, log } = this.#options;
    const policies = { get: () => undefined, subscribe: () => () => {} };
    const { discovery } = cluster;
    const projection = new PolicyProjection({ cluster, discovery, policies, annotation: 'remove', log });
    for (const policy of (await listAll<KubernetesObject>(cluster, NETWORK_POLICIES, { signal })).items) {
      await projection.write(policy, {}, signal);
    }
  }

  /** Gives up our fields, and deletes an object in which others have none. */
  async #release(type: ResourceType, object: KubernetesObject, signal: AbortSignal): Promise<void> {
    const { cluster } = this.#options;
    const key = keyOf(object);
    const { uid = '', managedFields = [] } = object.metadata;
    const hasOthers = managedFields.some(({ manager }) => manager !== NETWORK_POLICY_STATUS_MANAGER);
    if (!hasOthers) {
      await unlessGone(cluster.delete(type, key, { preconditions: { uid }, signal }));
      return;
    }
    const body = { apiVersion: apiVersionOf(type), kind: type.kind, metadata: { ...key } };
    const options = { fieldManager: NETWORK_POLICY_STATUS_MANAGER, subresource: 'status', signal };
    await unlessGone(cluster.patch(type, key, { type: 'apply', body, force: true }, options));
  }
}
