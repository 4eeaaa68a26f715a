import type { Cluster } from '../../cluster/index.ts';
import { type ObjectKey, POLICY_SETS, type Policy, type PolicySet } from '../../resources/index.ts';
import { type ObjectCache, WrittenObjects } from '../../runtime/index.ts';
import { StatusWriter } from '../status-writer.ts';
import { policySetStatus } from './policy-set-status.ts';

export interface PolicySetOptions {
  readonly cluster: Cluster;
  readonly policies: ObjectCache<Policy>;
  readonly policySets: ObjectCache<PolicySet>;
}

/** Keeps the status of PolicySets. */
export class PolicySetReconciler {
  readonly #policies: ObjectCache<Policy>;
  readonly #sets: WrittenObjects<PolicySet>;
  readonly #status: StatusWriter<PolicySet>;

  constructor({ cluster, policies, policySets }: PolicySetOptions) {
    this.#policies = policies;
    this.#sets = new WrittenObjects(policySets);
    this.#status = new StatusWriter(cluster, POLICY_SETS, this.#sets);
  }

  async reconcile(key: ObjectKey, signal: AbortSignal): Promise<void> {
    const set = this.#sets.get(key);
    if (set === undefined || set.metadata.deletionTimestamp !== undefined) {
      return;
    }
    const { namespace = '' } = key;
    const policyOf = (name: string): Policy | undefined => this.#policies.get({ namespace, name });
    await this.#status.write(set, policySetStatus(set, policyOf, Date.now()), signal);
  }
}
