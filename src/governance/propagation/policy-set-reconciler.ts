import type { Cluster } from '../../cluster/index.ts';
import type { ObjectKey, Policy, PolicySet } from '../../resources/index.ts';
import type { ObjectCache } from '../../runtime/index.ts';
import { OwnObjects } from '../own-objects.ts';
import { policySetStatus } from './policy-set-status.ts';

export interface PolicySetOptions {
  readonly cluster: Cluster;
  readonly policies: ObjectCache<Policy>;
  readonly policySets: ObjectCache<PolicySet>;
}

/** Keeps the status of PolicySets. */
export class PolicySetReconciler {
  readonly #policies: ObjectCache<Policy>;
  readonly #sets: OwnObjects<PolicySet>;

  constructor({ cluster, policies, policySets }: PolicySetOptions) {
    this.#policies = policies;
    this.#sets = new OwnObjects(cluster, policySets);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const set = this.#sets.get(key);
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) {
      return;
    }
    const { namespace = '' } = key;
    const policyOf = (name: string): Policy | undefined => this.#policies.get({ namespace, name });
    await this.#sets.writeStatus(set, policySetStatus(set, policyOf, Date.now()), signal);
  }
}
